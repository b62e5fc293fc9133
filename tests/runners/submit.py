"""`python -m tests.runners.submit JSON`: start commands one after the other as `python -m MODULE ARGS` would.

One process, so that Beam is imported once; each module runs under the name `__main__` all the same, which is
what a graph must not depend on. JSON: `[[module, [argument, …]], …]`.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from unittest import mock


def main() -> None:
    from apache_beam.internal.gcp.auth import _Credentials

    _Credentials._credentials_init = True  # no account: the store is an emulator
    for module, argv in json.loads(sys.argv[1]):
        with mock.patch.object(sys, "argv", [module, *argv]), mock.patch.object(os, "_exit", sys.exit):
            try:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            except SystemExit as end:
                if end.code:
                    raise


if __name__ == "__main__":
    main()
