"""Optional packages: imported, or missed in one line with a command that installs them."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

import sabal
from sabal.core import extras
from sabal.core.extras import import_optional, install_command
from sabal.errors import MissingPackageError

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULES = {"markdown-it-py": "markdown_it", "pillow": "PIL", "tomli-w": "tomli_w"}


def packages(requirements):
    """The modules that requirements install."""
    names = (re.match(r"[A-Za-z0-9._-]+", each)[0] for each in requirements)
    return {MODULES.get(name, name) for name in names}


@pytest.fixture
def from_source(monkeypatch, tmp_path):
    """Pretend that this package was installed from `source` (direct_url.json), in a folder."""

    def pretend(source):
        monkeypatch.setattr(extras, "PROJECT", tmp_path / "no project")
        monkeypatch.setattr(extras, "_direct_url", lambda: source)
        monkeypatch.setattr(extras, "_pip", lambda: "pip")
        monkeypatch.chdir(tmp_path)

    return pretend


def test_a_package_that_is_there_is_imported():
    assert import_optional("json.decoder", "app", "to read") is json.decoder


def test_a_package_that_is_missing_is_named_with_its_purpose_and_a_command(monkeypatch):
    # Another test may have imported it already.
    monkeypatch.delitem(sys.modules, "PIL.Image", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingPackageError) as caught:
        import_optional("PIL.Image", "data", "to read images")
    assert "the package pillow to read images" in str(caught.value)
    assert str(caught.value).endswith(f"run: {install_command('data')}")
    assert "\n" not in str(caught.value)


def test_in_a_checkout_the_checkout_is_installed_with_its_constraints(monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "_pip", lambda: "pip")
    monkeypatch.chdir(ROOT)
    assert install_command("app") == 'pip install -c constraints.txt -e ".[app]"'
    monkeypatch.chdir(tmp_path)
    expected = f'pip install -c {ROOT}/constraints.txt -e "{ROOT}[app]"'
    assert install_command("app") == expected


def test_a_folder_is_installed_again_from_where_it_is(from_source, monkeypatch, tmp_path):
    folder = tmp_path / "my sabal"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    from_source({"dir_info": {}, "url": folder.as_uri()})
    assert install_command("app") == f'pip install "{folder}[app]"'
    monkeypatch.chdir(folder)
    assert install_command("app") == 'pip install ".[app]"'
    from_source({"dir_info": {"editable": True}, "url": folder.as_uri()})
    assert install_command("app") == f'pip install -e "{folder}[app]"'


def test_a_wheel_is_installed_again_while_it_is_there(from_source, tmp_path):
    wheel = tmp_path / "sabal-1.whl"
    wheel.touch()
    from_source({"archive_info": {}, "url": wheel.as_uri()})
    assert install_command("app") == f'pip install "sabal[app] @ {wheel.as_uri()}"'
    wheel.unlink()
    assert install_command("app") == 'pip install "sabal[app]"'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, '"sabal[ray]"'),
        (
            {"archive_info": {}, "url": "https://example.org/s.whl"},
            '"sabal[ray] @ https://example.org/s.whl"',
        ),
        (
            {"vcs_info": {"vcs": "git", "commit_id": "abc"}, "url": "https://example.org/s.git"},
            '"sabal[ray] @ git+https://example.org/s.git@abc"',
        ),
    ],
)
def test_other_origins(from_source, source, expected):
    from_source(source)
    assert install_command("ray") == f"pip install {expected}"


def test_the_pip_of_this_interpreter_is_named_where_the_shell_finds_another(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    monkeypatch.setenv("PATH", "")
    assert f"'{tmp_path}/my env/bin/python' -m pip install" in install_command("app")
    monkeypatch.chdir(tmp_path / "..")
    assert f"'{tmp_path.name}/my env/bin/python' -m pip install" in install_command("app")
    (tmp_path / "my env" / "bin").mkdir(parents=True)
    pip = tmp_path / "my env" / "bin" / "pip"
    pip.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(pip.parent))
    assert install_command("app").startswith("pip install ")


def calls():
    """(file, module, extra) of every import of an optional package by the helper."""
    for path in Path(sabal.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_optional":
                module, extra = node.args[:2]
                if isinstance(module, ast.Constant):
                    yield path, module.value, extra.value


def test_the_extra_that_is_named_installs_the_package():
    known = PROJECT["optional-dependencies"]
    found = list(calls())
    assert len(found) > 10
    for path, module, extra in found:
        wanted = known[extra]
        if extra == "simulate":
            assert wanted == ["sabal[parquet,plot]"]
            wanted = known["parquet"] + known["plot"]
        assert module.partition(".")[0] in packages(wanted), f"{path}: {module} in {extra}"


def test_no_message_writes_the_command_itself():
    for path in Path(sabal.__file__).parent.rglob("*.py"):
        assert not re.search(r"pip install [^\n]*sabal\[", path.read_text()), path


def test_the_core_is_light():
    core = {"array-api-compat", "numpy", "rich", "scikit-learn", "scipy", "threadpoolctl", "typer"}
    assert packages(PROJECT["dependencies"]) == core
