"""The pages and the HTTP interface of the labelling app."""

from sabal.labeling.web.app import create_app
from sabal.labeling.web.server import serve

__all__ = ["create_app", "serve"]
