"""A real S3 server on loopback (moto's), and the settings that Arrow and fsspec find it by."""

from __future__ import annotations

import logging
import urllib.request
from contextlib import contextmanager
from unittest import mock

import moto.server

BUCKET = "bucket"


@contextmanager
def s3_server():
    """Yield the URL of a new, empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    try:
        with mock.patch.dict("os.environ", settings):
            make = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")  # noqa: S310
            urllib.request.urlopen(make).close()  # noqa: S310
            yield f"s3://{BUCKET}"
    finally:
        server.stop()
