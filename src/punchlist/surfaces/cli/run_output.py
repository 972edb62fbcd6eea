"""What receives the events and the result of `punchlist run`, and how a run ends: result, what is left, exit code.

`run_display.py` shows a run on a terminal, `run_stream.py` prints lines of JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from punchlist.agent.continuation import Reason
from punchlist.kernel.text import one_line, visible
from punchlist.surfaces.cli.context import CliContext, echo_error, echo_json
from punchlist.verification.model import CheckOutcome, Mark
from punchlist.views.turn_items import TurnItem, all_cancelled, given_up, turn_items

if TYPE_CHECKING:
    from punchlist.agent.events import AgentEvent
    from punchlist.agent.turn_model import TurnResult
    from punchlist.app import Services
    from punchlist.models.model import Usage

EXIT_CODES: Final = {
    Reason.COMPLETED: 0,
    Reason.ERROR: 1,
    Reason.OPEN: 3,
    Reason.CAPPED: 3,
    Reason.BUDGET: 3,
    Reason.STALLED: 3,
    Reason.WAITING: 4,
    Reason.CANCELLED: 130,
}
NOT_PROVEN: Final = 3
"""With --strict, for a turn that cancelled all its items, one of a person or one whose check had failed, or completed
one that nothing proves."""
WAITING: Final = "`punchlist inbox` lists what needs you; `punchlist run --resume` continues afterwards."


class RunOutput:
    """Of `--json`: nothing but the result at the end."""

    animated = False
    """Whether `tick` shows anything."""
    on_closed: Callable[[str], None] = staticmethod(lambda _: None)
    """Called when the reader of the output is gone."""

    def show_event(self, event: AgentEvent) -> None:
        """An event of the agent or of one of its workers."""

    def note(self, text: str) -> None:
        """A line about the run that is not an event of a turn."""

    def pause(self) -> None:
        """A question to the person is on the terminal."""

    def resume(self) -> None:
        """The question is answered."""

    def tick(self) -> None:
        """Called several times a second while a turn runs."""

    def close(self) -> None:
        """The run has ended."""

    def show_result(self, result: dict[str, Any], ended: TurnResult) -> None:
        """Print the result of the run on stdout: the object of `--json`, or the answer."""
        del ended
        echo_json(result)


# --- the end ----------------------------------------------------------------------------------------------


def finish(cli: CliContext, services: Services, ended: TurnResult, output: RunOutput, *, strict: bool = False) -> int:
    """Print the result of a turn; returns the exit code."""
    counted = {item.id for item in ended.items}
    items = turn_items(services, cli.user_scope(services), ended.turn_id, counted)
    output.show_result(result_json(services.settings.session, ended, items), ended)
    left = given_up(services, cli.user_scope(services), ended.turn_id, items)
    if told := _ending(ended, items, left):
        echo_error(told)
    if ended.reason is Reason.WAITING:
        echo_error(WAITING)
    elif ended.reason is not Reason.COMPLETED:
        echo_error("`punchlist run --resume` continues from here.")
    if strict and ended.reason is Reason.COMPLETED and (all_cancelled(items) or left or _unproven(items)):
        return NOT_PROVEN
    return EXIT_CODES[ended.reason]


def result_json(session: str, ended: TurnResult, items: Sequence[TurnItem]) -> dict[str, Any]:
    """The object of `--json`. `cost` is there if it is known, `allCancelled` if it is true."""
    return {
        "conversationId": session,
        "turnId": ended.turn_id,
        "reason": ended.reason.value,
        "text": ended.text,
        "iterations": ended.iterations,
        "continuations": ended.continuations,
        "todos": items,
        "usage": usage_json(ended.usage),
        **({} if ended.cost is None else {"cost": ended.cost}),
        **({"allCancelled": True} if all_cancelled(items) else {}),
    }


def usage_json(usage: Usage) -> dict[str, int]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cached_tokens,
    }


def _ending(ended: TurnResult, items: Sequence[TurnItem], left: Mapping[str, str]) -> str:
    """How the turn ended, if there is more to tell than that everything is done."""
    return "\n".join(part for part in (ended.ending or _cancelled(items, left), _unproven(items)) if part)


def _unproven(items: Sequence[TurnItem]) -> str:
    """The completed items that are not proven: no call was made for them, or their check could not be run."""
    lines = []
    for item in items:
        result = item["checkResult"] or {}
        if item["status"] != "completed" or item["mark"] == Mark.ACCEPTED:
            continue
        if result.get("outcome") == CheckOutcome.NOT_RUN:
            lines.append(f"\n- {visible(item['title'])}: its check was not run: {one_line(result['output'], 200)}")
        elif item["mark"] == Mark.CLAIMED:
            lines.append(f"\n- {visible(item['title'])}: no tool call was made for it")
    return f"Completed, but not proven:{''.join(lines)}" if lines else ""


def _cancelled(items: Sequence[TurnItem], left: Mapping[str, str]) -> str:
    cancelled = [item for item in items if item["status"] == "cancelled"]
    if not cancelled:
        return ""
    reasons = "".join(
        f"\n- {visible(item['title'])}{_note(item, left)}: {one_line(_reason(item))}" for item in cancelled
    )
    if len(cancelled) < len(items):
        return f"{len(cancelled)} of {len(items)} items were cancelled:{reasons}"
    which = "its only item was" if len(items) == 1 else f"all {len(items)} items were"
    return f"Ended as completed, but {which} cancelled:{reasons}"


def _note(item: TurnItem, left: Mapping[str, str]) -> str:
    why = left.get(item["id"])
    return f" ({why})" if why else ""


def _reason(item: TurnItem) -> str:
    return item.get("outcome") or item.get("reason") or "no reason given"
