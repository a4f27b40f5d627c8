"""The pages and the HTTP interface of the labelling app."""

try:
    import fastapi  # noqa: F401
    import jinja2  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    from sabal.core.extras import missing_package

    raise missing_package(error.name or "fastapi", "app", "for the labelling app", error) from None

from sabal.labeling.web.app import create_app
from sabal.labeling.web.server import serve

__all__ = ["create_app", "serve"]
