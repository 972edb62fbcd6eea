"""Jinja2 templates with autoescape. A request for a fragment gets the live part of the page without its frame."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.web.pages import formats, names, plots
from punchlist.surfaces.web.pages.markdown import render_markdown

STATIC: Final = Path(__file__).parent.parent / "static"


@cache
def environment() -> Environment:
    found = Environment(
        loader=PackageLoader("punchlist.surfaces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_finalize,
    )
    found.filters |= {
        "markdown": render_markdown,
        "money": formats.money,
        "amount": formats.amount,
        "value": formats.value,
        "words": formats.words,
        "plain_number": formats.plain_number,
        "span": formats.span,
        "since": formats.since,
        "day": formats.day,
        "local_day": formats.local_day,
        "model_name": formats.model_name,
        "clock": formats.clock,
        "moment": formats.moment,
        "diff": formats.diff_lines,
        "block": visible_block,
        "actor": names.actor_name,
        "agent": names.agent_name,
        "action": names.action_name,
        "reason": names.reason_text,
        "wait": names.wait_text,
        "notice": names.notice_name,
        "chat_title": names.chat_title,
        "inline": formats.inline,
        "sentence": formats.sentence,
        "field_value": formats.field_value,
        "counted": formats.counted,
        "json_attribute": partial(json.dumps, ensure_ascii=True),
    }
    found.tests["diff"] = formats.is_diff
    found.globals |= {"plots": plots, "static": static_url}
    return found


def _finalize(value: Any) -> Any:
    """Text on pages never contains invisible characters, whatever the database holds."""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return visible_block(value) if "\n" in value else visible(value)
    return "" if value is None else value


def render(template: str, values: Mapping[str, Any], now: datetime, *, fragment: bool) -> str:
    layout = "fragment.html" if fragment else "frame.html"
    context = {**values, "layout": layout, "now": now, "ago": partial(formats.ago, now=now)}
    return environment().get_template(template).render(context)


@cache
def static_url(name: str) -> str:
    """The address of a static file, with its hash: it may be cached forever."""
    digest = sha256((STATIC / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?{digest}"
