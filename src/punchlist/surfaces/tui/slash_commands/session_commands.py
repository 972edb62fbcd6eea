"""Commands about the session as a whole: `/resume /clear /export /cost /goal`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from punchlist.errors import ConfigError, NotFound
from punchlist.integrations.session_goals import SessionGoals
from punchlist.kernel.text import visible, visible_block
from punchlist.surfaces.tui.slash_commands.model import (
    ConfirmAction,
    DialogName,
    LoadHistory,
    OpenDialog,
    ShowMessage,
    SlashCommand,
    SlashContext,
    SlashResult,
)
from punchlist.views.sessions import new_session_id
from punchlist.views.usage import TurnUsage, session_usage

SHOWN_TURNS: Final = 12


def _resume(context: SlashContext, arguments: str) -> SlashResult:
    if not arguments:
        return OpenDialog(DialogName.RESUME)
    try:
        return LoadHistory(context.services.conversations.get(arguments).id)
    except NotFound:
        # Words to search for.
        return OpenDialog(DialogName.RESUME, arguments)


def _clear(context: SlashContext, _: str) -> SlashResult:
    if context.running and not context.confirmed:
        return ConfirmAction(
            "Begin a new session? The running turn continues, and /resume returns to it.", context.line
        )
    return LoadHistory(new_session_id(context.services.settings))


def _export(context: SlashContext, arguments: str) -> SlashResult:
    from punchlist.import_export.files import write_file
    from punchlist.surfaces.conversation_export import as_json, as_markdown, load_record

    session = context.scope.conversation_id
    name = Path(arguments or f"{Path(session).name}.md").expanduser()
    target = name if name.is_absolute() else context.services.workspace / name
    if target.exists() and not context.confirmed:
        return ConfirmAction(f"{visible(target)} exists. Replace it?", context.line)
    record = load_record(context.services.store, context.services.conversations.get(session))
    if target.suffix == ".json":
        import json

        text = json.dumps(as_json(record), indent=2, default=repr) + "\n"
    else:
        text = as_markdown(record)
    write_file(target, text)
    return ShowMessage(f"Wrote {visible(target)} ({target.stat().st_size:,} bytes).")


def _cost(context: SlashContext, _: str) -> SlashResult:
    turns = session_usage(context.services.store, context.scope.conversation_id)
    if not turns:
        return ShowMessage("This session has no turn yet, so it has used nothing.")
    total_in, total_out = sum(turn.input_tokens for turn in turns), sum(turn.output_tokens for turn in turns)
    lines = [
        f"{len(turns)} turn{'s' if len(turns) != 1 else ''}: {total_in:,} tokens in, {total_out:,} out, "
        f"{sum(turn.requests for turn in turns):,} model requests, {sum(turn.calls for turn in turns):,} tool calls",
        *([price] if (price := _price(context.model, total_in, total_out)) else []),
        *(_turn_line(number, turn) for number, turn in list(enumerate(turns, 1))[-SHOWN_TURNS:]),
    ]
    return ShowMessage("\n".join(lines), is_report=True)


def _turn_line(number: int, used: TurnUsage) -> str:
    state = (used.turn.end_reason or "running").partition(":")[0]
    return (
        f"{number:>3}  {used.input_tokens:>9,} in {used.output_tokens:>8,} out  {used.requests:>3} requests "
        f"{used.calls:>3} calls  {used.seconds:,.0f} s  {visible(state)}"
    )


def _price(model: str, input_tokens: int, output_tokens: int) -> str:
    """The upper bound of the cost at the prices of the current model: cached tokens count in full."""
    from punchlist.models.model import Usage
    from punchlist.models.pricing import model_info
    from punchlist.models.providers import resolve_model

    try:
        cost = model_info(resolve_model(model, os.environ)).cost(Usage(input_tokens, output_tokens))
    except (ConfigError, ImportError):
        return ""
    return "" if cost is None else f"At most ${cost:,.4f} at the prices of {visible(model)}."


def _goal(context: SlashContext, arguments: str) -> SlashResult:
    from punchlist.verification.goal import Goal

    if arguments:
        _goals(context).set(context.scope, Goal(arguments))
        return ShowMessage("The goal is set. A judge decides at the end of each turn whether it is met.")
    found = _goals(context).get(context.scope.conversation_id)
    if found is None:
        return ShowMessage("This session has no goal. Set one: /goal All tests pass.")
    checks = [f"Check: {visible(check.description)}" for check in found.checks]
    return ShowMessage("\n".join(["Goal: " + visible_block(found.criteria), *checks]))


def _clear_goal(context: SlashContext, _: str) -> SlashResult:
    cleared = _goals(context).clear(context.scope)
    return ShowMessage("Removed the goal." if cleared else "This session has no goal.")


def _goals(context: SlashContext) -> SessionGoals:
    return SessionGoals(context.services.store, context.services.conversations)


COMMANDS: Final = (
    SlashCommand("resume", "Open another session", _resume, argument_hint="[SESSION]"),
    SlashCommand("clear", "Begin a new session", _clear),
    SlashCommand("export", "Write the session to a file (.md or .json)", _export, argument_hint="[FILE]"),
    SlashCommand("cost", "Tokens, requests and time of this session", _cost),
    SlashCommand(
        "goal",
        "Show or set what the work is accepted by",
        _goal,
        (SlashCommand("clear", "Remove the goal", _clear_goal),),
        argument_hint="[TEXT]",
    ),
)
