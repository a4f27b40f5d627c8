"""The package as others get it: built, installed into an environment of its own, and run."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sabal

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"


def call(*words, **options):
    answer = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **options
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The commands of an environment with the wheel; what it depends on is borrowed from ours."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    place = sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder})
    commands = Path(sysconfig.get_path("scripts", vars={"base": folder}))
    call(
        *(sys.executable, "-m", "pip", "--python", commands / "python", "install", "--quiet"),
        *("--no-deps", "--no-index", "--no-compile", built[1]),
    )
    # A line adds a folder, and not what its own .pth files add: our checkout stays out of it.
    Path(place, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return commands


def sources():
    files = (path.relative_to(SOURCES) for path in SOURCES.rglob("*") if path.is_file())
    return {str(path) for path in files if "__pycache__" not in path.parts}


def test_the_wheel_has_every_file_of_the_sources_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == sources()
    assert "sabal/py.typed" in files


def test_the_sdist_has_what_its_tests_need(built):
    with tarfile.open(built[0]) as sdist:
        files = {name.partition("/")[2] for name in sdist.getnames()}
    assert {f"src/{name}" for name in sources()} <= files
    for needed in ("pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt"):
        assert needed in files
    assert {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")} <= files
    assert {f"examples/{path.name}" for path in (ROOT / "examples").iterdir()} <= files


def test_the_command_runs_from_the_wheel(installed, tmp_path):
    where = call(installed / "python", "-c", "import sabal; print(sabal.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert sabal.__version__ in call(installed / "sabal", "--version", cwd=tmp_path)
    assert "select" in call(installed / "sabal", "--help", cwd=tmp_path)
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "pool.npz", features=rng.normal(size=(50, 4)), logits=rng.normal(size=(50, 3))
    )
    call(installed / "sabal", "select", "pool.npz", "--budget", 5, "--out", "b.csv", cwd=tmp_path)
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 6


def test_importing_the_adapters_imports_none_of_the_other_packages():
    others = ("torch", "skorch", "skactiveml", "modAL", "transformers", "sklearn", "matplotlib")
    code = f"import sys, sabal.integrations; print([m for m in {others} if m in sys.modules])"
    assert call(sys.executable, "-c", code).strip() == "[]"


def test_an_adapter_whose_package_is_missing_says_what_to_install():
    code = (
        "import sys; sys.modules['skactiveml'] = None\n"
        "import sabal\n"
        "try: import sabal.integrations.activeml\n"
        "except sabal.SabalError as error: print(error)"
    )
    assert "pip install scikit-activeml" in call(sys.executable, "-c", code)
