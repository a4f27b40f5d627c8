"""The names of backbones, checked before a project is made and not when its features are due."""

from __future__ import annotations

import difflib

from sabal.errors import InputError

AUTO = "auto"
OF_KIND = {"image": ("pixels", "efficientnet_lite0"), "text": ("tfidf", "all-MiniLM-L6-v2")}
CLOSE = 0.75  # the similarity from which a name is taken for a misspelt one


def check_backbone(kind: str, name: str) -> None:
    """Refuse a backbone of the other kind, and a name that looks like a misspelt one.

    Other names are those of networks that only their packages know.
    """
    own = (AUTO, *OF_KIND[kind])
    if name in own:
        return
    for other, names in OF_KIND.items():
        if name in names:
            raise InputError(
                f"a backbone for {kind}s: {', '.join(own)}, or the name of a network",
                f"{name!r}, which is for {other}s",
                "choose another",
            )
    close = difflib.get_close_matches(name.lower(), [each.lower() for each in own], 1, CLOSE)
    if close:
        meant = next(each for each in own if each.lower() == close[0])
        raise InputError(
            f"a backbone out of {', '.join(own)}, or the name of a network",
            repr(name),
            f"did you mean {meant!r}?",
        )
