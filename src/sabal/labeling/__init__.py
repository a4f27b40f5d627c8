"""The labelling room: the person in the loop.

A project's folder and store, and the engine that trains and chooses. The process that runs it is
in `worker`, the web app in `web`, files from and for other tools in `exchange`.
"""

try:
    import sqlalchemy  # noqa: F401
except ImportError as error:
    from sabal.errors import MissingPackageError

    raise MissingPackageError(
        "the packages of the labelling app", str(error), 'pip install "sabal[app]"'
    ) from None

from sabal.labeling.engine import Engine
from sabal.labeling.project import Project
from sabal.labeling.settings import Settings
from sabal.labeling.store import Store

__all__ = ["Engine", "Project", "Settings", "Store"]
