"""People with personal links: a token of their own and a role each.

Of a token only its SHA-256 is stored. The tokens are random texts of 192 bits, so that neither a
salt nor a slow hash would add anything.
"""

from __future__ import annotations

import hashlib
import secrets

import sqlalchemy as sa

from sabal.core.checks import check_choice
from sabal.errors import InputError, UnknownNameError, did_you_mean
from sabal.labeling.store import schema
from sabal.labeling.store.records import ANNOTATOR, ROLES, Person, check_name
from sabal.labeling.store.store_base import StoreBase

TOKEN_BYTES = 24
MAX_PERSON_LENGTH = 80  # as in the HTTP interface


class PersonalLinkStore(StoreBase):
    """The part of the store that knows who may do what."""

    def people(self) -> list[Person]:
        """Return the people who have a personal link, by name."""
        with self.database.read() as connection:
            return [person for _, person in _current(connection).values()]

    def person_with(self, token: str) -> Person | None:
        """Return whose personal link has `token`; None if nobody's does."""
        with self.database.read() as connection:
            return dict(_current(connection).values()).get(token_hash(token))

    def add_person(self, name: str, role: str = ANNOTATOR) -> str:
        """Add a person, and return the token of their link, which is not stored."""
        name = _checked_name(name)
        with self.database.write() as connection:
            taken = {each.casefold(): each for each in _current(connection)}
            if name.casefold() in taken:
                raise InputError(
                    "the name of somebody new",
                    repr(taken[name.casefold()]),
                    "renew their link, or choose another name",
                )
            return self._record(connection, name, check_choice(role, "role", tuple(ROLES)))

    def renew_person(self, name: str, role: str | None = None) -> str:
        """Return a new token for a person; the old one is not accepted any more."""
        with self.database.write() as connection:
            person = _find(connection, name)
            role = person.role if role is None else check_choice(role, "role", tuple(ROLES))
            return self._record(connection, person.name, role)

    def remove_person(self, name: str) -> None:
        """Take the link of a person away; their answers stay."""
        with self.database.write() as connection:
            self._insert(connection, _find(connection, name).name, None, None)

    def _record(self, connection: sa.Connection, name: str, role: str) -> str:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._insert(connection, name, role, token_hash(token))
        return token

    def _insert(
        self, connection: sa.Connection, name: str, role: str | None, digest: str | None
    ) -> None:
        values = {"name": name, "role": role, "token_hash": digest}
        connection.execute(
            schema.people.insert().values(**values, recorded_at=self.database.now_text())
        )


def token_hash(token: str) -> str:
    """Return what is stored of a token."""
    # A token from a request may contain an unpaired surrogate, which must not fail here.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _current(connection: sa.Connection) -> dict[str, tuple[str, Person]]:
    """Return the hash of the token and the person, by name and in the order of names."""
    rows = connection.execute(sa.select(schema.people).order_by(schema.people.c.id))
    latest = {row.name: row for row in rows}
    return {
        name: (row.token_hash, Person(name, row.role))
        for name, row in sorted(latest.items())
        if row.role is not None
    }


def _find(connection: sa.Connection, name: str) -> Person:
    people = _current(connection)
    if name.strip() not in people:
        raise UnknownNameError(
            f"a person out of {', '.join(people)}" if people else "a person with a personal link",
            repr(name),
            did_you_mean(name, people, "list them, or add the person"),
        )
    return people[name.strip()][1]


def _checked_name(name: str) -> str:
    check_name(name, "name")
    name = name.strip()
    if len(name) > MAX_PERSON_LENGTH or not name.isprintable():
        raise InputError(
            f"a name of 1 to {MAX_PERSON_LENGTH} characters that can be printed",
            repr(name[:MAX_PERSON_LENGTH]),
            "choose another name",
        )
    return name
