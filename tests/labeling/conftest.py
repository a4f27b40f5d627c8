from __future__ import annotations

import itertools

import pytest

from postgresql_server import running_postgresql, server_programs


@pytest.fixture(scope="session")
def postgresql():
    """A private PostgreSQL server."""
    if server_programs() is None:
        pytest.skip("PostgreSQL is not installed: run scripts/install-postgresql.sh")
    with running_postgresql() as server:
        yield server


@pytest.fixture
def new_server_database(postgresql):
    """Return a function that makes a database on a server and returns its URL.

    Unless it is to be `empty`, it has the tables of a store.
    """
    made = []

    def new(*, empty=False):
        made.append(postgresql.new_database(empty=empty))
        return made[-1]

    yield new
    for url in made:
        postgresql.give_back(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request, tmp_path):
    """Return a function that returns the path or URL of a new database, on either engine."""
    if request.param == "postgresql":
        return request.getfixturevalue("new_server_database")
    numbers = itertools.count()
    return lambda *, empty=False: tmp_path / f"s{next(numbers)}.db"


@pytest.fixture
def database(new_database):
    """Return the path or URL of a new database, on either engine."""
    return new_database()
