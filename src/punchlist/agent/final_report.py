"""The last model call of a turn that reached a limit: no tools, only a report (T9)."""

from __future__ import annotations

import json

from punchlist.agent.continuation import Limits, Reason, TurnCounters
from punchlist.models.model import CallReturn, Message, ModelRequest, Reply, UserText


def may_report(reason: Reason, spent: TurnCounters, limits: Limits, interrupted: bool) -> bool:
    """Whether a report is due and its request fits into the budgets."""
    if interrupted or reason not in (Reason.CAPPED, Reason.BUDGET):
        return False
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        return False
    if limits.tokens is not None and spent.tokens + spent.context > limits.tokens:
        return False
    return limits.cost is None or spent.cost + spent.next_cost <= limits.cost


def final_prompt(why: str) -> str:
    return (
        f"Stop here: {why}. You have no tools any more. Report to the user now: what is done, what is not, and what "
        "should happen next. Claim nothing that you have not done."
    )


def report_request(request: ModelRequest) -> ModelRequest:
    """The request without tools. Providers reject tool calls in the history of such a request, so they become text."""
    return ModelRequest(request.system, [_as_text(message) for message in request.messages], (), request.max_tokens)


def _as_text(message: Message) -> Message:
    match message:
        case Reply(calls=calls) if calls:
            lines = [*([message.text] if message.text else []), *(_call(call.tool, call.arguments) for call in calls)]
            return Reply("\n".join(lines), (), message.finish, message.usage)
        case CallReturn():
            return UserText(f"[{message.tool} {'failed' if message.failed else 'returned'}: {message.text}]")
        case _:
            return message


def _call(tool: str, arguments: object) -> str:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[called {tool} {written}]"
