"""The built-in commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.text import did_you_mean, excerpt, visible
from punchlist.surfaces.tui.slash_commands import agent_commands, session_commands
from punchlist.surfaces.tui.slash_commands.command_files import load_commands
from punchlist.surfaces.tui.slash_commands.list_commands import QUEUE, TODOS, open_dialog
from punchlist.surfaces.tui.slash_commands.model import (
    DialogName,
    OpenDialog,
    QuitApplication,
    ShowMessage,
    SlashCommand,
    SlashContext,
    SlashResult,
)
from punchlist.surfaces.tui.slash_commands.registry import SlashRegistry
from punchlist.toolcalls.policy import Mode

if TYPE_CHECKING:
    from punchlist.app import Services

MODES: Final = tuple(mode.value for mode in Mode)


def _mode(context: SlashContext, arguments: str) -> SlashResult:
    if not arguments:
        return OpenDialog(DialogName.MODE)
    if arguments not in MODES:
        hint = did_you_mean(arguments, MODES)
        raise InvalidInput(f"There is no mode {excerpt(arguments)!r}.{hint} There are: {', '.join(MODES)}.")
    if arguments == context.mode:
        return ShowMessage(f"The mode is already {arguments}.")
    return OpenDialog(DialogName.MODE, arguments)


def _model(_: SlashContext, arguments: str) -> SlashResult:
    from punchlist.models.providers import REHEARSAL, resolve_model

    if arguments and not arguments.startswith(f"{REHEARSAL}:"):
        resolve_model(arguments, os.environ)
    return OpenDialog(DialogName.MODEL, arguments)


def _models(context: SlashContext) -> Sequence[str]:
    """Models that the settings name, and the default of each provider."""
    from punchlist.models.providers import PROVIDERS

    agents = context.services.agents
    named = [agents.default_model, *(agent.model for agent in agents.definitions.values())]
    defaults = [f"{one.name}:{one.default_model}" for one in PROVIDERS.values() if one.default_model]
    return list(dict.fromkeys(name for name in (*named, *defaults) if name))


def _mission_slugs(context: SlashContext) -> Sequence[str]:
    return [mission.slug for mission in context.services.missions.list()]


def _mission(context: SlashContext, arguments: str) -> SlashResult:
    if arguments:
        return OpenDialog(DialogName.MISSIONS, context.services.missions.get(arguments).slug)
    if not context.services.missions.list():
        return ShowMessage("There is no mission. `punchlist mission init` writes a mission.json to begin with.")
    return OpenDialog(DialogName.MISSIONS)


def _quit(_: SlashContext, __: str) -> SlashResult:
    return QuitApplication()


BUILT_IN: Final[Sequence[SlashCommand]] = (
    TODOS,
    QUEUE,
    SlashCommand("plan", "Plans of this and earlier turns", open_dialog(DialogName.PLANS)),
    SlashCommand("mission", "Open the board of a mission", _mission, (), "[SLUG]", _mission_slugs),
    SlashCommand("runs", "Background runs: pause, resume, redirect, stop", open_dialog(DialogName.RUNS)),
    SlashCommand("approvals", "Answer what waits for approval", open_dialog(DialogName.APPROVALS)),
    SlashCommand("search", "Search all sessions and items", open_dialog(DialogName.SEARCH), argument_hint="[WORDS]"),
    SlashCommand("mode", "Show or set the mode", _mode, (), "[MODE]", lambda _: MODES),
    SlashCommand("model", "Show or set the model", _model, (), "[NAME]", _models),
    SlashCommand("keys", "Show the keys", open_dialog(DialogName.KEYS)),
    SlashCommand("quit", "Quit; running work continues", _quit),
    *session_commands.COMMANDS,
    *agent_commands.COMMANDS,
)


def open_registry(services: Services, environment: Mapping[str, str]) -> tuple[SlashRegistry, list[str]]:
    """The commands of this project, and the problems of command files. Read again after a file has changed."""
    written, problems = load_commands(services, environment)
    hidden = {command.name for command in BUILT_IN} | {"help"}
    problems += [
        f"/{each.name} is built in; rename the {each.source} command." for each in written if each.name in hidden
    ]
    commands = [*BUILT_IN, *written]
    return SlashRegistry([*commands, help_command(commands)]), problems


def help_command(commands: Sequence[SlashCommand]) -> SlashCommand:
    """`/help`, which lists itself and the other commands."""

    def show(_: SlashContext, arguments: str) -> SlashResult:
        names = {command.name: command for command in known}
        if arguments:
            wanted = arguments.removeprefix("/").split()[0]
            if wanted not in names:
                raise InvalidInput(f"There is no command /{excerpt(wanted)}.{did_you_mean(wanted, names)}")
            return ShowMessage("\n".join(_detail(names[wanted])))
        return ShowMessage("\n".join(_table([(command.usage, command) for command in known])))

    own = SlashCommand("help", "List the commands", show, (), "[COMMAND]", lambda _: [each.name for each in known])
    known = sorted({command.name: command for command in (*reversed(commands), own)}.values(), key=lambda one: one.name)
    return own


def _table(rows: Sequence[tuple[str, SlashCommand]]) -> list[str]:
    """Usage and description, in columns."""
    width = max(len(visible(usage)) for usage, _ in rows)
    return [_line(usage, command, width) for usage, command in rows]


def _line(usage: str, command: SlashCommand, width: int) -> str:
    source = "" if command.source.value == "built in" else f" [{command.source.value}]"
    reason = f" ({command.unavailable})" if command.unavailable else ""
    return f"{visible(usage):<{width}}  {visible(command.description)}{source}{reason}"


def _detail(command: SlashCommand) -> list[str]:
    subs = [(f"/{command.name} {sub.name} {sub.argument_hint}".rstrip(), sub) for sub in command.sub_commands]
    return _table([(command.usage, command), *subs])
