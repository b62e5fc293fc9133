"""Object stores on loopback: gs:// by gcp-storage-emulator, s3:// by moto's server."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from rag_core import files
from tests.runners.cluster import free_port

BUCKET = "ragline-test"  # names under three characters hang in the client
NO_ACCOUNT = ["--project=ragline-test", "--no_auth"]
S3_KEYS = {
    "s3_access_key_id": "AKIA-dummy-id",
    "s3_secret_access_key": "dummy-hush",
    "s3_region_name": "us-east-1",
}


@contextlib.contextmanager
def google_storage() -> Iterator[dict[str, str]]:
    """An empty bucket `gs://ragline-test`; yields the environment that leads clients to it."""
    from gcp_storage_emulator.server import create_server

    port = free_port()
    server = create_server("localhost", port, in_memory=True, default_bucket=BUCKET)
    logging.getLogger("gcp_storage_emulator").setLevel(logging.CRITICAL)
    server.start()
    env = {
        "STORAGE_EMULATOR_HOST": f"http://localhost:{port}",
        "NO_GCE_CHECK": "true",
        "GOOGLE_CLOUD_PROJECT": "ragline-test",
    }
    try:
        with mock.patch.dict(os.environ, env), no_credentials():
            yield env
    finally:
        server.stop()


@contextlib.contextmanager
def no_credentials() -> Iterator[None]:
    """Connect without an account; Beam looks for one for 25 s, also with --no_auth."""
    from apache_beam.internal.gcp.auth import _Credentials

    with mock.patch.multiple(_Credentials, _credentials_init=True, _credentials=None):
        yield


@contextlib.contextmanager
def amazon_storage() -> Iterator[list[str]]:
    """An empty bucket `s3://ragline-test`; yields the options that lead Beam to it."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    keys = {
        "aws_access_key_id": S3_KEYS["s3_access_key_id"],
        "aws_secret_access_key": S3_KEYS["s3_secret_access_key"],
    }
    boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys).create_bucket(Bucket=BUCKET)
    options = {"s3_endpoint_url": url, **S3_KEYS}
    try:
        yield [f"--{name}={value}" for name, value in options.items()]
    finally:
        server.stop()


def upload_tree(directory: Path, url: str) -> None:
    """Every file below a directory, under a URL."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            files.upload_file(str(path), f"{url}/{path.relative_to(directory).as_posix()}")
