"""The package as others get it: built, installed into an environment of its own, and run."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement

import sabal

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"
LARGEST_CORE = 260e6
"""Bytes of the core and all that it depends on, without compiled bytecode."""


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


def environment_of(wheel, folder):
    """The folders of packages and of commands of an environment with nothing but `wheel`."""
    venv.create(folder, symlinks=True)
    place = sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder})
    commands = Path(sysconfig.get_path("scripts", vars={"base": folder}))
    call(
        *(sys.executable, "-m", "pip", "--python", commands / "python", "install", "--quiet"),
        *("--no-deps", "--no-index", "--no-compile", wheel),
    )
    return Path(place), commands


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The commands of an environment with the wheel; what it depends on is borrowed from ours."""
    place, commands = environment_of(built[1], tmp_path_factory.mktemp("environment"))
    # A line adds a folder, and not what its own .pth files add: our checkout stays out of it.
    (place / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return commands


def requirements(wheel):
    """What the wheel asks for."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode().splitlines()
    words = "Requires-Dist: "
    return [Requirement(line.removeprefix(words)) for line in lines if line.startswith(words)]


def closure(wanted):
    """The installed distributions that requirements need, and all that these need, by name."""
    found, waiting = {}, list(wanted)
    while waiting:
        each = waiting.pop()
        if each.name in found or (each.marker and not each.marker.evaluate({"extra": ""})):
            continue
        found[each.name] = distribution(each.name)
        waiting += map(Requirement, found[each.name].requires or [])
    return found


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory):
    """The commands of an environment with the wheel and what its core depends on, and no more."""
    place, commands = environment_of(built[1], tmp_path_factory.mktemp("bare"))
    ours = Path(sysconfig.get_path("purelib"))
    for each in closure(requirements(built[1])).values():
        for name in {file.parts[0] for file in each.files} - {"..", "__pycache__"}:
            if not (place / name).exists():
                (place / name).symlink_to(ours / name)
    return commands


def write_pool(folder):
    rng = np.random.default_rng(0)
    features, logits = rng.normal(size=(50, 4)), rng.normal(size=(50, 3))
    np.savez(folder / "pool.npz", features=features, logits=logits)


def sources():
    files = (path.relative_to(SOURCES) for path in SOURCES.rglob("*") if path.is_file())
    return {str(path) for path in files if "__pycache__" not in path.parts}


def test_the_wheel_has_every_file_of_the_sources_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == sources()
    assert "sabal/py.typed" in files
    assert {name.partition("/")[0] for name in files} == {"sabal"}


def test_the_sdist_has_what_its_tests_need(built):
    with tarfile.open(built[0]) as sdist:
        files = {name.partition("/")[2] for name in sdist.getnames()}
    assert {f"src/{name}" for name in sources()} <= files
    for needed in ("pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt"):
        assert needed in files
    assert {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")} <= files
    assert {f"examples/{path.name}" for path in (ROOT / "examples").iterdir()} <= files


def test_the_command_runs_from_the_wheel(installed, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    where = call(installed / "python", "-c", "import sabal; print(sabal.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert sabal.__version__ in call(installed / "sabal", "--version", cwd=tmp_path)
    assert "select" in call(installed / "sabal", "--help", cwd=tmp_path)
    write_pool(tmp_path)
    call(installed / "sabal", "select", "pool.npz", "--budget", 5, "--out", "b.csv", cwd=tmp_path)
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 6


def test_the_core_and_all_it_depends_on_are_small(built):
    bytecode = (".pyc", ".pyo")
    size = sum(
        file.locate().stat().st_size
        for each in closure(requirements(built[1])).values()
        for file in each.files
        if file.suffix not in bytecode and file.locate().is_file()
    )
    assert size <= LARGEST_CORE


def test_the_core_alone_chooses(bare, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    write_pool(tmp_path)
    answer = call(bare / "sabal", "select", "pool.npz", "--budget", 5, "--json", cwd=tmp_path)
    assert '"strategy": "sabal"' in answer


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("parquet", "select pool.parquet --budget 5"),
        ("parquet", "select pool.npz --budget 5 --out batch.parquet"),
        ("simulate", "simulate digits --out run"),
        ("simulate", "simulate digits --model mlp --out run"),
        ("app", "init project --data texts.csv --classes a,b"),
        ("app", "label project --example"),
        ("ray", "select pool.npz --budget 5 --engine ray"),
    ],
)
def test_the_core_alone_names_what_is_missing(bare, built, tmp_path, monkeypatch, extra, arguments):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    write_pool(tmp_path)
    (tmp_path / "pool.parquet").write_bytes(b"PAR1")
    answer = subprocess.run(
        [bare / "sabal", *arguments.split()], capture_output=True, text=True, cwd=tmp_path
    )
    assert answer.returncode == 2
    [line] = answer.stderr.splitlines()
    assert f'pip install "sabal[{extra}] @ {built[1].as_uri()}"' in line
    assert {path.name for path in tmp_path.iterdir()} == {"pool.npz", "pool.parquet"}


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


def metadata_of(monkeypatch, **settings):
    for name in ("SABAL_REPOSITORY", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return ProjectMetadata(str(ROOT), PluginManager()).core


def relative_links(text):
    return [link for link in re.findall(r"\]\(([^)]+)\)", text) if not re.match(r"https?:|#", link)]


def test_an_index_gets_absolute_links_and_addresses(monkeypatch):
    """Relative links of the README lead nowhere on the page of a package index."""
    plain = metadata_of(monkeypatch)
    assert plain.urls == {}
    assert relative_links(plain.readme), "none is made up"
    for settings, base in (
        ({"SABAL_REPOSITORY": "https://example.org/sabal/"}, "https://example.org/sabal"),
        (
            {"GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "some/sabal"},
            "https://github.example/some/sabal",
        ),
    ):
        core = metadata_of(monkeypatch, **settings)
        assert not relative_links(core.readme)
        assert f"({base}/blob/v{sabal.__version__}/docs/start.md)" in core.readme
        assert f"({base}/raw/v{sabal.__version__}/docs/images/curves.png)" in core.readme
        assert core.urls["Source"] == base
        assert core.readme_content_type == "text/markdown"


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == sabal.__version__
    assert citation["license"] == distribution("sabal").metadata["License-Expression"]


def test_the_files_for_the_usual_host_are_well_formed():
    folder = ROOT / ".github"
    pages = {path.name: yaml.safe_load(path.read_text()) for path in folder.rglob("*.yml")}
    assert set(pages) == {"ci.yml", "bug.yml", "idea.yml", "config.yml"}
    for name in ("bug.yml", "idea.yml"):
        assert {"name", "description", "body"} <= set(pages[name])
    steps = [step for job in pages["ci.yml"]["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert {"make test", "make docs", "python -m build"} <= set(commands)
    supported = {
        line.rpartition(" :: ")[2]
        for line in distribution("sabal").metadata.get_all("Classifier")
        if re.search(r":: 3\.\d+$", line)
    }
    assert set(pages["ci.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"]) == supported
