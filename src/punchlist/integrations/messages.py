"""What hooks say: texts for a host agent's context, and the answer to a stop, for the agent and the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from punchlist.agent.continuation import Continue, Decision, Exits, OpenItem, Reason, Stop, Wait, ending_text, next_item
from punchlist.kernel.text import excerpt, quoted, visible_block

if TYPE_CHECKING:
    from punchlist.integrations.host_evidence import ClaimedItem
    from punchlist.integrations.item_checks import CheckedItem
    from punchlist.integrations.person_changes import PersonChange
    from punchlist.integrations.session_state import UncheckedItem
    from punchlist.verification.model import Check, CheckResult

GOAL_NOT_MET: Final = "the goal of this session is not met"
JUDGED_AS_MET: Final = "The judge found that the goal is met."
STILL_JUDGED: Final = "The judge has not decided yet whether the goal is met: `punchlist goal show` tells."
_MAX_REQUEST_LENGTH: Final = 1_000
_MAX_COMMAND_LENGTH: Final = 200
_MAX_NAMED: Final = 10
_MAX_CHANGES: Final = 5
_MAX_FAILURES: Final = 3
_MAX_TITLE_LENGTH: Final = 200
_MAX_OUTPUT_LINES: Final = 30
_MAX_OUTPUT_LENGTH: Final = 4_000


@dataclass(frozen=True, slots=True)
class StopDecision:
    """The answer to a host agent that wants to stop."""

    decision: Decision
    open_items: tuple[OpenItem, ...] = ()
    pause: float = 0.0
    """Seconds to wait before the agent continues (C4); doubles while nothing changes."""
    silent: bool = False
    """The person gets no notice."""
    notes: tuple[str, ...] = ()
    """What the person is told besides, such as checks that were not run."""
    questioned: tuple[str, ...] = ()
    """The ids of the completed items that the agent is asked about."""
    not_rechecked: bool = False
    """A check that has passed before the last change could not be run again."""

    @property
    def prompt(self) -> str | None:
        """What the agent is told to do next; None if it may stop."""
        return self.decision.prompt if isinstance(self.decision, Continue) else None

    @property
    def is_goal_unmet(self) -> bool:
        """The agent may stop although its goal is not met."""
        return isinstance(self.decision, Stop) and self.decision.why.startswith(GOAL_NOT_MET)

    def notice(self) -> str:
        """What the person is told about a stop with open items."""
        match self.decision:
            case Wait(on):
                text = ending_text(Reason.WAITING, "; ".join(on), ())
            case Stop(reason, why) if reason is not Reason.COMPLETED and not self.silent:
                text = ending_text(reason, why, self.open_items)
            case _:
                text = ""
        return visible_block("\n".join(part for part in (text, *self.notes) if part))


def list_found(shown: str) -> str:
    """For a new session that finds open items."""
    return (
        f"Punchlist keeps a list for this project. An earlier session left it like this:\n\n{shown}\n\n"
        "If the user wants this work done, continue with it. Otherwise leave it unchanged, or replace it with your own "
        "list."
    )


def list_resumed(shown: str, request: str | None) -> str:
    """For a session that was resumed or compacted."""
    last_request = (
        f"\n\nThe user's last request was: {excerpt(' '.join(request.split()), _MAX_REQUEST_LENGTH)}" if request else ""
    )
    return (
        f"Your list, as Punchlist stored it:\n\n{shown}{last_request}\n\nContinue with it and mark each item when it "
        "is done. Do not hand back before the list is clear."
    )


def earlier_list_open(items: Sequence[OpenItem], exits: Exits) -> str:
    """For an agent that stops while only items of an earlier session are open."""
    return (
        f"{_open_items('an earlier session', items)} If the user asked for this work, continue with it and "
        f"{_end_next(items, exits)}. Otherwise leave it unchanged and answer the user."
    )


def untouched_list_open(items: Sequence[OpenItem], exits: Exits) -> str:
    """For an agent that stops and has not changed its list since the user's last message."""
    return (
        f"{_open_items('your list', items)} If the user's last message leaves you free to continue, do it now and "
        f"{_end_next(items, exits)}. If the user wants something else or wants to talk first, leave the list unchanged "
        "and answer the user."
    )


def _end_next(items: Sequence[OpenItem], exits: Exits) -> str:
    following = next_item(items)
    on_checklist = following is not None and following.list == "checklist"
    return f"mark it completed with {exits.list_tool}" if on_checklist else "end it with complete_todo"


def items_dropped(items: Sequence[OpenItem]) -> str:
    """For an agent that dropped items from its checklist; empty if it dropped none."""
    dropped = [item for item in items if item.dropped]
    if not dropped:
        return ""
    named = ", ".join(quoted(item.title) for item in dropped[:_MAX_NAMED])
    more = f" and {len(dropped) - _MAX_NAMED} more" if len(dropped) > _MAX_NAMED else ""
    return (
        f"You dropped these items from your list without finishing them: {named}{more}. They stay open until you send "
        "them again, or send them with status cancelled and a reason."
    )


def changed_by_people(changes: Sequence[PersonChange]) -> str:
    """What people changed on the agent's lists (X9); empty if they changed nothing."""
    if not changes:
        return ""
    verbs = list(dict.fromkeys(change.verb for change in changes))
    by_verb = sorted(changes, key=lambda change: verbs.index(change.verb))
    parts, last_verb = list[str](), ""
    for change in by_verb[:_MAX_CHANGES]:
        parts.append(_changed_item(change) if change.verb == last_verb else f"{change.verb} {_changed_item(change)}")
        last_verb = change.verb
    if len(changes) > _MAX_CHANGES:
        parts.append(f"{len(changes) - _MAX_CHANGES} more")
    named = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
    # The plan is kept here only; of a checklist the agent has its own copy.
    advice = " Bring your own list into line." if any(change.on_checklist for change in changes) else ""
    return f"The user {named}.{advice}"


def _changed_item(change: PersonChange) -> str:
    title = quoted(excerpt(change.title, _MAX_TITLE_LENGTH))
    is_reworded = change.verb == "reworded" and change.before
    return f"{quoted(excerpt(change.before, _MAX_TITLE_LENGTH))} as {title}" if is_reworded else title


def plan_prepared(shown: str) -> str:
    """For an agent whose user planned items before the prompt."""
    return f"The user has already put this on your plan:\n\n{shown}\n\nlist_todo shows the details. Work through it."


def plan_unfinished(shown: str, *, plans: bool = True) -> str:
    """For a prompt that arrives while a plan is open. Without `plans`, the agent has only a checklist."""
    again = "plan them again with create_todo" if plans else "put them on your list with TodoWrite"
    return (
        f"The plan of the previous turn was not finished:\n\n{shown}\n\nThis is a new turn with an empty plan. If the "
        f"user wants these items done, {again}."
    )


def checks_failed(failed: Sequence[CheckedItem]) -> str:
    """For an agent that completed items whose checks fail."""
    return "\n\n".join(_failed_check(item) for item in failed)


def _failed_check(item: CheckedItem) -> str:
    changed = " after a later change" if item.has_passed else ""
    return (
        f"The check of {quoted(item.title)} failed{changed}, so the item is open again. "
        f"{_check_output(item.check, item.result)}"
    )


def checks_failed_before(items: Sequence[UncheckedItem]) -> str:
    """For an agent that stops while items are open whose checks have failed; empty if there are none."""
    shown = [(item.title, item.verification.check, item.verification.result) for item in items[:_MAX_FAILURES]]
    return "\n\n".join(
        f"The check of {quoted(title)} has failed. {_check_output(check, result)}"
        for title, check, result in shown
        if check is not None and result is not None
    )


def _check_output(check: Check, result: CheckResult) -> str:
    return f"Check: {excerpt(check.description, _MAX_COMMAND_LENGTH)}\n{output_tail(result.output)}"


def claims_questioned(claims: Sequence[ClaimedItem]) -> str:
    """For an agent that completed items without making any call for them; empty if there are none."""
    if not claims:
        return ""
    named = ", ".join(quoted(item.title) for item in claims[:_MAX_NAMED])
    more = f" and {len(claims) - _MAX_NAMED} more" if len(claims) > _MAX_NAMED else ""
    return (
        f"You marked {named}{more} as completed, but no tool call has succeeded since the work on it was begun. If the "
        "work is not done, do it now. If it needs no tool, or was done before, tell the user how you know."
    )


def check_not_run(item: CheckedItem) -> str:
    """For the person."""
    again = " again after a later change" if item.has_passed else ""
    return f"The check of {quoted(item.title)} was not run{again}. {excerpt(item.result.output, _MAX_REQUEST_LENGTH)}"


def output_tail(output: str) -> str:
    """The last lines of a check's output, indented: programs report failures at the end."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()][-_MAX_OUTPUT_LINES:]
    text = visible_block("\n".join(lines))[-_MAX_OUTPUT_LENGTH:]
    return "\n".join(f"    {line}" for line in text.splitlines()) or "    (no output)"


def goal_set(criteria: str) -> str:
    """For a prompt in a session that has a goal."""
    return f"The user accepts the work when this is true:\n\n{visible_block(criteria)}"


def goal_not_met(criteria: str, failed: Sequence[tuple[Check, CheckResult]]) -> str:
    """For an agent whose list is clear while checks of its goal fail."""
    failures = "\n\n".join(
        f"This check fails: {excerpt(check.description, _MAX_COMMAND_LENGTH)}\n{output_tail(result.output)}"
        for check, result in failed
    )
    return (
        f"Your list is clear, but the goal is not met yet.\n\n{failures}\n\n{goal_set(criteria)}\n\nDo what is "
        "missing now. If it cannot be done, tell the user why."
    )


def confirm_goal(criteria: str) -> str:
    """For an agent whose list is clear, before it may stop for the first time."""
    return (
        f"Your list is clear. {goal_set(criteria)}\n\nConfirm each point: look at the result, not at your memory. "
        "If a point is not true yet, do what is missing. Then answer the user, with what you looked at."
    )


def check_names(failed: Sequence[tuple[Check, CheckResult]]) -> str:
    return "; ".join(excerpt(check.description, _MAX_COMMAND_LENGTH) for check, _ in failed)


def _open_items(source: str, items: Sequence[OpenItem]) -> str:
    following = next_item(items)
    assert following is not None
    noun, verb = ("item", "is") if len(items) == 1 else ("items", "are")
    return (
        f"{len(items)} {noun} of {source} {verb} not done yet. The next is: {quoted(following.title)} "
        f"({following.reference})."
    )
