"""A private PostgreSQL in a temporary folder, reached through a socket in it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from sabal.labeling.store import schema
from sabal.labeling.store.database import Database
from sabal.labeling.store.migrations import MIGRATIONS, migrate

OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "60",
    "shared_buffers": "16MB",
}
"""No port, and no waiting for a disk: nothing here outlives the tests."""


def server_programs():
    """Return the folder of PostgreSQL's programs; None if it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    there = str(found[-1]) if found else shutil.which("initdb")
    return Path(there).resolve().parent if there else None


class PostgresqlServer:
    """A running server, whose databases are used again: making one takes long."""

    def __init__(self, folder):
        self.folder, self.made, self.unused = folder, 0, []
        self._admin = sa.create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")

    def url(self, name):
        return f"postgresql+psycopg://sabal@/{name}?host={self.folder}"

    def wait(self, process):
        while True:
            try:
                return self.run("SELECT 1")
            except sa.exc.OperationalError:
                assert process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.02)

    def run(self, statement):
        with self._admin.connect() as connection:
            connection.exec_driver_sql(statement)

    def new_database(self, *, empty):
        """Return the URL of a database that is `empty`, or has the tables of a store."""
        if self.unused and not empty:
            return self.unused.pop()
        self.made += 1
        url = self.url(f"test_{self.made}")
        self.run(f"CREATE DATABASE test_{self.made} TEMPLATE template0 STRATEGY file_copy")
        if not empty:
            with closing(Database(url)) as database:
                migrate(database)
        return url

    def give_back(self, url):
        """Empty the tables of a database for its next use, or drop it if it has others."""
        with closing(Database(url)) as database:
            emptied = _empty_tables(database)
        if emptied:
            self.unused.append(url)
        else:
            self.run(f"DROP DATABASE {sa.make_url(url).database} WITH (FORCE)")

    def close(self):
        self._admin.dispose()


def _empty_tables(database):
    steps = {step.number for step in MIGRATIONS}
    with database.write() as connection:
        known = sa.inspect(connection)
        if set(known.get_table_names()) != set(schema.metadata.tables):
            return False
        if set(connection.scalars(sa.select(schema.migrations.c.number))) != steps:
            return False
        for table in reversed(schema.metadata.sorted_tables):
            if table is not schema.migrations:
                connection.execute(table.delete())
        for sequence in known.get_sequence_names():
            connection.exec_driver_sql(f"ALTER SEQUENCE {sequence} RESTART")
    return True


@contextmanager
def running_postgresql():
    """Run a server of one's own; as root it runs as nobody, since PostgreSQL refuses root."""
    programs = server_programs()
    # Not in a folder of pytest's, which others cannot enter and whose name may be too long.
    folder = Path(tempfile.mkdtemp(prefix="sabal-pg-"))
    options = {"cwd": folder, "stdout": subprocess.DEVNULL}
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        options |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    initdb = (
        programs / "initdb", "-D", folder / "data", "-U", "sabal", "--auth=trust", "--no-sync",
        "--encoding=UTF8", "--locale=C",
    )  # fmt: skip
    try:
        with (folder / "log").open("wb") as log:
            subprocess.run(initdb, check=True, stderr=log, **options)
            given = [f"--{name}={value}" for name, value in OPTIONS.items()]
            postgres = [programs / "postgres", "-D", folder / "data", "-k", folder, *given]
            process = subprocess.Popen(postgres, stderr=log, **options)
        server = PostgresqlServer(folder)
        try:
            server.wait(process)
            yield server
        finally:
            server.close()
            process.send_signal(signal.SIGQUIT)  # at once, without writing anything
            process.wait()
    finally:
        shutil.rmtree(folder)
