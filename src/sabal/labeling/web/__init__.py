"""The labelling room's page and HTTP interface: FastAPI, Jinja2 and our own JavaScript and CSS."""

from sabal.labeling.web.app import create_app
from sabal.labeling.web.server import serve

__all__ = ["create_app", "serve"]
