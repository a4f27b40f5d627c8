"""The labelling app: people in the loop.

A project is a folder with its settings and its store. The engine trains and chooses, in a process
of its own (`worker_process`); the web app is in `web`, and files from and for other tools are in
`exchange`. Names are loaded on first use, so that the store does not import the selection core.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import PIL  # noqa: F401
    import safetensors  # noqa: F401
    import sqlalchemy  # noqa: F401
    import tomli_w  # noqa: F401
except ImportError as error:
    from sabal.core.extras import missing_package

    raise missing_package(
        error.name or "sqlalchemy", "app", "for the labelling app", error
    ) from None

if TYPE_CHECKING:
    from sabal.labeling.engine import Engine
    from sabal.labeling.project import Project
    from sabal.labeling.settings import Settings
    from sabal.labeling.store import Store

__all__ = ["Engine", "Project", "Settings", "Store"]


def __getattr__(name: str) -> Any:
    """Load a public name from the module of the same name in lower case."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{name.lower()}"), name)
