"""What the person behind a request may do.

Where nobody has a personal link, everybody who reaches the app may do everything under any name.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import Request

from sabal.labeling.store.records import ANSWER, LEAD, MANAGE, REVIEW, ROLES, Person
from sabal.labeling.web.error_responses import NotAllowedError

MEANINGS = {
    ANSWER: "to answer items",
    REVIEW: "to see everybody's answers",
    MANAGE: "to lead the project",
}


def person_of(request: Request) -> Person | None:
    """Return whose personal link the request was made with; None where there are none."""
    person: Person | None = getattr(request.state, "person", None)
    return person


def rights_of(request: Request) -> frozenset[str]:
    """Return what the person behind a request may do."""
    person = person_of(request)
    return ROLES[LEAD] if person is None else person.rights


def may(right: str) -> Callable[[Request], None]:
    """Return a dependency of a route that refuses people without a right."""

    def check(request: Request) -> None:
        if right not in rights_of(request):
            person = person_of(request)
            raise NotAllowedError(
                f"somebody who has the right {MEANINGS[right]}",
                f"a link of the role {person.role if person else LEAD}",
                "ask whoever leads the project",
            )

    return check


def check_own_name(request: Request, annotator: str) -> None:
    """Refuse an answer under another name than that of the personal link."""
    person = person_of(request)
    if person is not None and annotator != person.name:
        raise NotAllowedError(
            f"the name of your personal link, {person.name!r}",
            repr(annotator),
            "send your own name",
        )
