"""The command line: parse, call, print. A file for each family of commands."""

# The order of these lines is the order of the commands in `sabal --help`.
from sabal.cli import select  # isort: skip
from sabal.cli import labeling, sync, team, simulate  # isort: skip
from sabal.cli.root import app, main

__all__ = ["app", "labeling", "main", "select", "simulate", "sync", "team"]
