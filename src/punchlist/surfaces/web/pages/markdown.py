"""Markdown of agents and people as safe HTML: parsed without raw HTML, then reduced to a list of elements."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

MAX_LENGTH: Final = 100_000
"""Longer text is shown as it is, since parsing it would delay the page."""
_TAGS: Final = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}


_KEPT_LENGTH: Final = 4_000


def render_markdown(text: str) -> Markup:
    """Rendered once while a page is shown again and again, unless it is long."""
    return _render_kept(text) if len(text) <= _KEPT_LENGTH else _render(text)


def _render(text: str) -> Markup:
    import nh3

    from punchlist.kernel.text import visible_block

    shown = visible_block(text)
    if len(shown) > MAX_LENGTH:
        return Markup('<pre class="pre">{}</pre>').format(shown)
    html = nh3.clean(
        _parser().render(shown),
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(html)


_render_kept: Final = lru_cache(2_000)(_render)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _image_text)
    return parser


def _image_text(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """The alternative text: a text of an agent must not make the browser fetch anything."""
    text = renderer.renderInlineAsText(tokens[index].children or (), options, env)
    return str(escape(text or "image"))
