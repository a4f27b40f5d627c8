"""The token: what it may look like, and how often somebody may show a wrong one."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from enum import Enum

from sabal.errors import InputError

LEAST_LETTERS = 16
"""Of a token that other machines may guess at."""
MOST_WRONG = 10
"""Different wrong tokens that one address may show within a window."""
WINDOW_SECONDS = 60.0
MOST_ADDRESSES = 10_000
"""So many addresses are remembered: an attacker with more of them cannot fill the memory."""


class Verdict(Enum):
    """What came of a token that was shown."""

    RIGHT = "right"
    WRONG = "wrong"
    WAIT = "wait"


class Door:
    """Compares tokens in constant time, and stops to look at those of who guesses.

    The same wrong token again is no new guess: a page that was left open with the cookie of another
    day locks nobody out.
    """

    def __init__(self, token: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        if token is not None:
            check_token(token)
        self.token = token
        self._clock = clock
        self._wrong: dict[str, tuple[float, set[bytes]]] = {}

    def judge(self, address: str, shown: str | None) -> Verdict:
        """What to make of `shown`, which came from `address`; nothing is never right."""
        if not shown or self.token is None:
            return Verdict.WRONG
        now = self._clock()
        began, guesses = self._wrong.get(address, (now, set()))
        if now - began >= WINDOW_SECONDS:
            began, guesses = now, set()
        if len(guesses) >= MOST_WRONG:
            return Verdict.WAIT
        if hmac.compare_digest(_bytes(shown), _bytes(self.token)):
            return Verdict.RIGHT
        guesses.add(hashlib.sha256(_bytes(shown)).digest())
        self._wrong.pop(address, None)
        self._wrong[address] = began, guesses
        while len(self._wrong) > MOST_ADDRESSES:
            self._wrong.pop(next(iter(self._wrong)))
        return Verdict.WRONG


def check_token(token: str, least: int = 1) -> None:
    """Refuse a token that does not fit into a header, or that could be guessed."""
    if not re.fullmatch(r"[!-~]*", token):
        raise InputError(
            "a token of letters, digits and signs of ASCII, without blanks",
            "another character in it",
            "leave the token out: one is made up",
        )
    if len(token) < least:
        raise InputError(
            f"a token of at least {least} characters",
            f"{len(token)}",
            "leave the token out: one is made up",
        )


def _bytes(text: str) -> bytes:
    # Half a character, which a query can name, is no reason to fail.
    return text.encode("utf-8", "surrogatepass")
