"""Devices to write to that a defect in what is tested cannot take from the machine."""

from __future__ import annotations

import os
import stat

import pytest

MINOR = {"null": 3, "full": 7}
"""Of the devices /dev/null and /dev/full in Linux; their major number is 1."""


def make_device(folder, name):
    """A device of one's own for root, who could replace that of the machine; else the machine's."""
    if os.getuid() != 0:
        path = f"/dev/{name}"
        if not os.path.exists(path):
            pytest.skip(f"no {path}")
        return path
    path = folder / name
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, MINOR[name]))
        path.open("rb").close()
    except OSError:
        pytest.skip("no devices can be made here")
    return path


def is_device(path):
    return stat.S_ISCHR(os.stat(path).st_mode)
