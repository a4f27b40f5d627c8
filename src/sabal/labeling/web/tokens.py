"""Access tokens: one that all share or one for each person, and the limit on wrong ones."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sabal.errors import InputError
from sabal.labeling.store.records import Person

MIN_LENGTH = 16  # the minimal length of a token where other machines can reach the app
MAX_WRONG = 10  # the number of different wrong tokens that one address may present within a window
WINDOW_SECONDS = 60.0
MAX_ADDRESSES = 10_000  # remembered at most, so that an attacker cannot fill the memory


class Verdict(Enum):
    """The result of checking a token."""

    RIGHT = "right"
    WRONG = "wrong"
    WAIT = "wait"


@dataclass(frozen=True)
class Admission:
    """The result of checking a token, and whose it is; None where all share one."""

    verdict: Verdict
    person: Person | None = None


class PeopleWithLinks(Protocol):
    """Knows the people who have personal links, and their tokens."""

    def people(self) -> list[Person]:
        """Return all of them."""

    def person_with(self, token: str) -> Person | None:
        """Return the person whose token it is."""


class TokenGate:
    """Checks tokens in constant time, and limits the guesses of an address.

    Once somebody has a personal link, personal tokens only are accepted: the shared one, if there
    is one, would let its holder answer under any name.

    The limit never refuses a right token: other people may share the address, and pages of other
    sites can make their browsers guess. What protects a token is its length. Presenting the same
    wrong token again does not count as another guess, so that a page left open with an old cookie
    does not use up the guesses of its address.
    """

    def __init__(
        self,
        token: str | None,
        people: PeopleWithLinks | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if token is not None:
            check_token(token)
        self.token = token
        self._people = people
        self._clock = clock
        self._wrong: dict[str, tuple[float, set[bytes]]] = {}

    @property
    def personal(self) -> bool:
        """Whether people have personal links."""
        return self._people is not None and bool(self._people.people())

    @property
    def is_open(self) -> bool:
        """Whether no token is needed."""
        return self.token is None and not self.personal

    def check(self, address: str, given: str | None) -> Admission:
        """Check a token that came from `address`; a missing one is wrong."""
        if not given:
            return Admission(Verdict.WRONG)
        admission = self._admission(given)
        if admission.verdict is Verdict.RIGHT:
            return admission
        now = self._clock()
        began, guesses = self._wrong.get(address, (now, set()))
        if now - began >= WINDOW_SECONDS:
            began, guesses = now, set()
        if len(guesses) >= MAX_WRONG:
            return Admission(Verdict.WAIT)
        guesses.add(hashlib.sha256(_bytes(given)).digest())
        self._wrong.pop(address, None)
        self._wrong[address] = began, guesses
        while len(self._wrong) > MAX_ADDRESSES:
            self._wrong.pop(next(iter(self._wrong)))
        return admission

    def _admission(self, given: str) -> Admission:
        if self._people is not None and self.personal:
            person = self._people.person_with(given)
            return Admission(Verdict.WRONG if person is None else Verdict.RIGHT, person)
        right = self.token is not None and hmac.compare_digest(_bytes(given), _bytes(self.token))
        return Admission(Verdict.RIGHT if right else Verdict.WRONG)


def check_token(token: str, min_length: int = 1) -> None:
    """Refuse a token that does not fit into a header, or that is too short."""
    if not re.fullmatch(r"[!-~]*", token):
        raise InputError(
            "a token of letters, digits and signs of ASCII, without blanks",
            "another character in it",
            "leave the token out: one is made up",
        )
    if len(token) < min_length:
        raise InputError(
            f"a token of at least {min_length} characters",
            f"{len(token)}",
            "leave the token out: one is made up",
        )


def _bytes(text: str) -> bytes:
    # A query can contain an unpaired surrogate, which must not fail here.
    return text.encode("utf-8", "surrogatepass")
