"""Optional dependencies: import them, or say in one line how to install them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sabal.errors import MissingPackageError

PACKAGES = {"PIL": "pillow", "tomli_w": "tomli-w"}  # modules whose package has another name
PROJECT = Path(__file__).parents[3]  # the repository, if this is a source tree


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional dependency.

    Parameters
    ----------
    module : str
        The module, such as ``"pyarrow.parquet"``.
    extra : str
        The extra of this package that installs it.
    purpose : str
        What the module is needed for, as the end of a sentence: ``"to read Parquet files"``.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingPackageError
        If the module cannot be imported; the message has the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_package(module, extra, purpose, error) from None


def missing_package(
    module: str, extra: str, purpose: str, error: ImportError
) -> MissingPackageError:
    """Return the error for a module that failed to import; see `import_optional`."""
    top = module.partition(".")[0]
    return MissingPackageError(
        f"the package {PACKAGES.get(top, top)} {purpose}",
        str(error) or f"no module named {top!r}",
        f"run: {install_command(extra)}",
    )


def install_command(extra: str) -> str:
    """Return the command that adds an extra such as "app" to this installation.

    It installs from where this package came from: the source tree, the folder, the file or the
    repository. Only an installation from an index is named plainly.
    """
    return f"{_pip()} install {_requirement(extra)}"


def _requirement(extra: str) -> str:
    if PROJECT.joinpath("pyproject.toml").is_file() and PROJECT.joinpath("src/sabal").is_dir():
        return _from_folder(PROJECT, extra, editable=True)
    source = _direct_url()
    url = str(source.get("url", ""))
    if "vcs_info" in source:
        revision = source["vcs_info"].get("commit_id", "")
        return f'"sabal[{extra}] @ {source["vcs_info"]["vcs"]}+{url}@{revision}"'
    path = Path(unquote(urlsplit(url).path))
    if "dir_info" in source and path.joinpath("pyproject.toml").is_file():
        return _from_folder(path, extra, editable=bool(source["dir_info"].get("editable")))
    # A local file may have been moved or deleted since.
    if url and (not url.startswith("file:") or path.is_file()):
        return f'"sabal[{extra}] @ {url}"'
    return f'"sabal[{extra}]"'


def _from_folder(folder: Path, extra: str, *, editable: bool) -> str:
    here = os.path.realpath(folder) == os.path.realpath(os.curdir)
    words = []
    if folder.joinpath("constraints.txt").is_file():
        words += ["-c", "constraints.txt" if here else shlex.quote(str(folder / "constraints.txt"))]
    if editable:
        words.append("-e")
    target = "." if here else str(folder)
    return " ".join([*words, f'"{target}[{extra}]"'])


def _pip() -> str:
    """Return `pip`, or this interpreter's pip where the shell would find another one."""
    found = shutil.which("pip")
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):
        return "pip"
    python = sys.executable or "python"
    inside = os.path.relpath(python) if python.startswith(os.getcwd() + os.sep) else python
    return f"{shlex.quote(inside)} -m pip"


def _direct_url() -> dict[str, Any]:
    """Return the origin of an installation that does not come from an index (PEP 610)."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = json.loads(distribution("sabal").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
