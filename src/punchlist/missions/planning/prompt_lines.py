"""Lines and blocks of the prompts of a mission: a text of others stays on its line or inside its block. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from punchlist.kernel.clock import parse_timestamp
from punchlist.kernel.text import ELLIPSIS, visible, visible_block
from punchlist.missions.model import Escalation, MissionTodo, Strategy

if TYPE_CHECKING:
    from punchlist.missions.metrics.service import MetricView

MAX_LINE_LENGTH: Final = 300
MAX_LABEL_LENGTH: Final = 120
"""Of a title in a list."""
MAX_BLOCK_LENGTH: Final = 4_000

_AGES: Final = (
    (60 * 86_400, 30 * 86_400, "month"),
    (2 * 86_400, 86_400, "day"),
    (2 * 3_600, 3_600, "hour"),
    (60, 60, "minute"),
)

# Markdown syntax at the start of a line.
_MARKDOWN_SYNTAX: Final = re.compile(r"^(\s*)(?=[#=>~`]|---|\*\*\*|___)", re.MULTILINE)


def metric_line(view: MetricView) -> str:
    metric = view.metric
    current = "no reading yet" if view.current is None else amount(view.current.value, metric.unit)
    bound = {"down": "at most ", "up": "at least "}.get(metric.direction, "")
    facts = [f"target: {bound}{amount(metric.target, metric.unit)}"]
    if metric.warning is not None:
        facts.append(f"warning: {amount(metric.warning, metric.unit)}")
    facts += [f"status: {line(view.status)}", f"trend: {line(view.trend)}"]
    slug = f" [{line(metric.slug)}]" if metric.slug else ""
    return f"- {line(metric.name)}{slug}: {current} ({', '.join(facts)}){' STALE' if view.stale else ''}"


def age(since: str, now: datetime) -> str:
    """An age in words."""
    seconds = (now - parse_timestamp(since)).total_seconds()
    for least, unit, name in _AGES:
        if seconds >= least:
            count = int(seconds // unit)
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "a moment"


def strategy_text(strategy: Strategy) -> str:
    return f"{line(strategy.description)} ({line(strategy.status)})"


def escalation_line(escalation: Escalation) -> str:
    # Without the last line, which explains the command line to people.
    question = " ".join(escalation.question.splitlines()[:2])
    return f"- {line(question)} (todo id {escalation.todo_id})"


def todo_label(todo: MissionTodo) -> str:
    return f"“{line(todo.title, MAX_LABEL_LENGTH)}” (id {todo.id})"


def amount(value: float, unit: str) -> str:
    return f"{value:.15g}{f' {line(unit)}' if unit else ''}"


def sentence(text: str) -> str:
    shown = line(text)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def line(text: str, max_length: int = MAX_LINE_LENGTH) -> str:
    shown = visible(text[: max_length + 1].strip())
    return shown if len(shown) <= max_length else shown[: max_length - 1] + ELLIPSIS


def text_block(text: str, max_length: int = MAX_BLOCK_LENGTH) -> str:
    """Several lines, with Markdown headings escaped."""
    shown = text.strip().replace("\r\n", "\n")
    cut = shown if len(shown) <= max_length else shown[: max_length - 1] + ELLIPSIS
    return _MARKDOWN_SYNTAX.sub(r"\1\\", visible_block(cut))
