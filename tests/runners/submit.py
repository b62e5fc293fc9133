"""`python -m tests.runners.submit JSON`: start commands one after the other as `python -m MODULE ARGS` would.

One process, so that Beam is imported and the package built once (it is staged for each job). Each module runs
under the name `__main__` all the same, which is what a graph must not depend on.
JSON: `[[module, [argument, …]], …]`.
"""

from __future__ import annotations

import functools
import json
import os
import runpy
import sys
import tempfile
from unittest import mock


def main() -> None:
    from apache_beam.internal.gcp.auth import _Credentials
    from apache_beam.runners.portability.stager import Stager

    _Credentials._credentials_init = True  # no account: the store is an emulator
    build, built = Stager._build_setup_package, tempfile.mkdtemp(prefix="ragline-package-")
    build_once = functools.cache(lambda setup_file: build(setup_file, built))
    Stager._build_setup_package = staticmethod(lambda setup_file, *_: build_once(setup_file))
    for module, argv in json.loads(sys.argv[1]):
        with mock.patch.object(sys, "argv", [module, *argv]), mock.patch.object(os, "_exit", sys.exit):
            try:
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            except SystemExit as end:
                if end.code:
                    raise


if __name__ == "__main__":
    main()
