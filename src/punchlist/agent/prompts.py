"""System prompts. A section is included if the agent has the tools that the section describes (T8, W8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from punchlist.agent.continuation import OpenItem, next_item
from punchlist.checklist.render import GUIDANCE as CHECKLIST
from punchlist.kernel.text import quoted

SUPERVISOR: Final = """\
You are the supervisor. You take a request, get it done with your tools, and answer when it is done. Do not assume: \
read or run something before you rely on it."""
RESEARCHER: Final = """\
You are a researcher. A supervisor gives you a mission. Find the information by reading and searching. Do not change \
anything. Report what you found, where you found it, and what you did not find."""
CODER: Final = """\
You are a coder. A supervisor gives you a mission. Read code before you change it, change only what is needed, and run \
checks that show it works. Report what you changed and what the checks printed."""
WRITER: Final = """\
You are a writer. A supervisor gives you a mission. Write short, correct, well-ordered text. Report what you wrote and \
where it is."""

MISSION_LEAD: Final = """\
You are the Mission Lead. You decide which todos the mission works on, and only you complete them. You do not do the \
work yourself: start a todo with mission_todo_update, and the owner of its pillar works on it and reports to you. \
Slots are limited: fill them with the todos that move the metrics most, across all pillars, and cancel or demote the \
rest. When you review a report, compare it with the completion criteria and check the evidence. Then either complete \
the todo with mission_todo_complete and the outcome, or answer with what is missing. If only a person can decide, ask \
in the mission chat."""
PILLAR_OWNER: Final = """\
You own one pillar of a mission. When planning, review its metrics and strategies, create todos that close the gaps \
(each with a justification and completion criteria that can be checked), and cancel todos that no longer matter. You \
cannot promote or demote todos: recommend it to the Mission Lead. When you get a todo to work on, do it with your \
tools or delegate parts of it. Report what you did, what you observed, and how each criterion is met. Do not mark the \
todo as completed: the Mission Lead reviews your report."""

PLANNING: Final = """\
## Planning

If a request needs several steps, plan first: call create_todo once with all tasks. Then work on one task at a time: \
call start_todo, do the task or delegate it, then call complete_todo with the outcome. Add tasks if more is needed. \
Cancel tasks that are not needed, with the reason. If a task fails, call complete_todo with status failed: it is \
retried once, then skipped. If a task needs an answer from a person, a time or an event, call wait_todo and continue \
with other tasks. Do not answer the user before every task is completed or cancelled. If a request needs only one or \
two tool calls, do not plan."""
DELEGATING: Final = """\
## Delegating

delegate gives a mission to a worker. The worker knows only the text you write: state the task, what matters, and what \
to report. You receive the worker's report, and you mark the task. Your workers:"""
HONESTY: Final = """\
## Reporting

Mark a task completed only if it is done; a failed tool call has not done the work. If something cannot be done, say \
so and continue with the rest."""


def system_prompt(
    own: str, tools: Collection[str], *, workspace: str, workers: Mapping[str, str] = MappingProxyType({})
) -> str:
    """The text is the same for the whole turn, so that providers can cache it. `workers` maps names to descriptions."""
    sections = [own, f"Your workspace is the folder {workspace}. Paths are relative to it."]
    if "create_todo" in tools:
        sections.append(PLANNING)
    if "delegate" in tools and workers:
        described = "\n".join(f"- {name}{f': {what}' if what else ''}" for name, what in workers.items())
        sections.append(f"{DELEGATING}\n\n{described}")
    if "TodoWrite" in tools:
        sections.append(f"## Checklist\n\n{CHECKLIST}")
    return "\n\n".join([*sections, HONESTY])


def reminder(
    *,
    requests: int,
    since_change: int,
    after: int | None,
    open: Collection[OpenItem],
    tools: Collection[str],
    listed: bool,
) -> str | None:
    """The reminder to send before the next model request, or None.

    `requests` counts the model requests of the turn, `since_change` those since a list last changed.
    `after=None` turns reminders off. The caller makes sure that no list state gets two reminders.
    """
    writer = next((tool for tool in ("create_todo", "TodoWrite") if tool in tools), None)
    if after is None or writer is None:
        return None
    if requests == 0 and not listed:
        return (
            f"There is no todo list yet. If this request takes three or more steps, write a list with {writer} first. "
            "Otherwise continue without one. Do not mention this reminder."
        )
    following = next_item(list(open))
    if since_change < after or following is None:
        return None
    return (
        f"The todo list has not changed for {since_change} steps. Mark finished items as completed, and update the "
        f"list if it no longer matches the work. The next item is: {quoted(following.title)} (id {following.id}). "
        "Do not mention this reminder."
    )
