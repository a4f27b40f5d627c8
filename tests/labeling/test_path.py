"""The path of a label is short, and the store does not import the selection core."""

from __future__ import annotations

import subprocess
import sys
import threading

from security_helpers import client_of, label, text_project

MAX_MODULES = 13


def modules_entered(call):
    """Return the modules of sabal whose functions are entered during a call, in any thread."""
    entered = set()

    def profile(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.split(".")[0] == "sabal":
            entered.add(name)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return entered


def test_storing_a_label_enters_few_modules(tmp_path):
    project = text_project(tmp_path / "texts")
    client = client_of(project)
    # Without its context the client starts its threads with the request, so they are profiled.
    modules = modules_entered(lambda: client.post("/api/labels", json=label()))
    assert len(project.store.history()) == 1
    assert "sabal.labeling.web.routes_write" in modules
    assert "sabal.labeling.store.database" in modules
    assert len(modules) <= MAX_MODULES, sorted(modules)
    project.close()


def test_the_store_does_not_import_the_selection_core():
    code = (
        "import sys, sabal.labeling.store; "
        "print([m for m in sys.modules if m.split('.')[:2] in ("
        "['sabal', 'loop'], ['sabal', 'strategies'], ['sabal', 'sparse'], ['sabal', 'api'])])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
