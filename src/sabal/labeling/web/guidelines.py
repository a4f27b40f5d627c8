"""Guidelines in Markdown as HTML that cannot do anything but be read."""

from __future__ import annotations

from functools import cache
from typing import Any

from markupsafe import Markup

from sabal.core.extras import import_optional
from sabal.labeling.store.records import Guidelines


@cache
def _markdown() -> Any:
    markdown = import_optional("markdown_it", "app", "to show guidelines")
    # No HTML and no images: the page loads nothing from elsewhere. Scripts in links are refused.
    parser = markdown.MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

    def open_link(tokens: Any, at: int, options: Any, env: Any) -> str:
        tokens[at].attrSet("target", "_blank")
        tokens[at].attrSet("rel", "noopener noreferrer")
        return str(parser.renderer.renderToken(tokens, at, options, env))

    parser.add_render_rule("link_open", lambda self, *given: open_link(*given))
    return parser


def as_html(text: str) -> Markup:
    """Return a text in Markdown as HTML, with its headings below those of the page."""
    parser, env = _markdown(), {}  # type: ignore[var-annotated]
    tokens = parser.parse(text, env)
    for part in tokens:
        if part.type in ("heading_open", "heading_close"):
            part.tag = f"h{min(6, int(part.tag[1]) + 2)}"
    html = parser.renderer.render(tokens, parser.options, env)
    return Markup(html)  # noqa: S704  # nosec B704  # escaped by the parser


def shown_guidelines(given: Guidelines) -> dict[str, Any]:
    """Return the guidelines as the pages show them: HTML of the project and of classes."""
    return {
        "project": as_html(given.project) if given.project.strip() else None,
        "classes": {name: as_html(text) for name, text in given.classes.items() if text.strip()},
    }
