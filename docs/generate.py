"""Writes the pages that are made from code: `make docs`. A test fails when a page and its source differ."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import typer.main
from docs.picture import picture

from punchlist.checklist.lifecycle import CHECKLIST
from punchlist.checklist.tools import checklist_tools
from punchlist.claims.lifecycle import CLAIM
from punchlist.claims.tools import claim_tools
from punchlist.conversations.lifecycle import QUEUE, TURN
from punchlist.kernel.lifecycle import Lifecycle
from punchlist.kernel.tool import ListToolSpec
from punchlist.missions.escalations.lifecycle import ESCALATION
from punchlist.missions.todos.lifecycle import MISSION
from punchlist.missions.todos.tools import mission_tools
from punchlist.plan.lifecycle import CONDITION, PLAN
from punchlist.plan.tools import plan_tools
from punchlist.runs.lifecycle import RUN
from punchlist.surfaces.cli.main import app
from punchlist.toolcalls.lifecycle import APPROVAL, TOOL_CALL
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.tool_session import native_tools
from punchlist.tools.workspace import Workspace

FOLDER = Path(__file__).parent
NOTE = "<!-- Made by `make docs`; edit the code it comes from. -->"
COMMANDS = [
    [],
    ["run"],
    ["demo"],
    *([name] for name in ("install", "uninstall", "status")),
    ["queue"],
    *(["queue", name] for name in ("list", "add", "edit", "remove")),
    ["answer"],
    ["wake"],
    *(["agents", name] for name in ("list", "show")),
    *(["mission", name] for name in ("init", "schema", "apply", "export", "trust", "list", "show", "archive")),
    *(["mission", name] for name in ("escalations", "answer", "acknowledge", "cycle", "prompt", "costs")),
    *(
        ["mission", "todo", name]
        for name in ("list", "show", "create", "promote", "demote", "start", "cancel", "extend")
    ),
    *(["mission", "todo", name] for name in ("reprioritize", "complete", "claim", "renew", "release")),
    *(["mission", "chat", name] for name in ("list", "show", "send")),
    *(["mission", "metric", name] for name in ("list", "show", "record", "collect")),
    *(["mission", "runs", name] for name in ("list", "show", "pause", "resume", "redirect", "stop")),
    ["worker"],
    ["todos"],
    *(["todos", name] for name in ("add", "start", "done", "reopen", "edit", "move", "cancel", "clear", "undo")),
    *(["todos", name] for name in ("claim", "renew", "release")),
    ["inbox"],
    *(["inbox", name] for name in ("approve", "deny", "modify", "answer", "acknowledge")),
    *([name] for name in ("import", "export")),
    *(["tools", name] for name in ("list", "call", "history")),
    ["approvals"],
    *(["approvals", name] for name in ("list", "approve", "deny", "modify")),
    *(["policy", name] for name in ("show", "explain")),
    ["trust"],
    ["sessions"],
    *(["sessions", name] for name in ("list", "show", "export", "end")),
    ["log"],
    ["mcp"],
    ["hook"],
    *(["db", name] for name in ("path", "check", "upgrade", "backup", "restore")),
]


def lifecycles() -> str:
    parts = ["# Lifecycles", NOTE, "Every list is a table of (state, action) → state. These are drawn from the tables."]
    for lifecycle in (CHECKLIST, PLAN, CONDITION, CLAIM, MISSION, ESCALATION, RUN, TOOL_CALL, APPROVAL, TURN, QUEUE):
        parts.append(f"## {lifecycle.name.capitalize()}\n\n```mermaid\n{lifecycle.mermaid()}\n```\n\n{_who(lifecycle)}")
    return "\n\n".join(parts) + "\n"


def _who(lifecycle: Lifecycle[Any, Any]) -> str:
    rows = [f"| {action} | {', '.join(sorted(roles))} |" for action, roles in lifecycle.allowed.items()]
    return "\n".join(["| action | who may |", "|---|---|", *rows])


def tools() -> str:
    lists: list[ListToolSpec[Any]] = [
        *checklist_tools(_no_service),
        *plan_tools(_no_service),
        *claim_tools(lambda _: {}),
        *mission_tools(_no_service),
    ]
    work = native_tools(Workspace(FOLDER))
    return "\n\n".join(["# Tools", NOTE, *map(_tool, lists), *map(_native, work)]) + "\n"


def _native(tool: FunctionTool) -> str:
    schema = json.dumps(tool.input_schema, indent=2)
    return f"## {tool.name}\n\n{tool.description}\n\nEffect: {tool.effect}.\n\nArguments:\n\n```json\n{schema}\n```"


def _tool(tool: ListToolSpec[Any]) -> str:
    schemas = [("Arguments", tool.input_schema), ("Result", tool.output_schema)]
    blocks = [f"{name}:\n\n```json\n{json.dumps(schema, indent=2)}\n```" for name, schema in schemas]
    return "\n\n".join([f"## {tool.name}", tool.description, f"For: {', '.join(sorted(tool.roles))}.", *blocks])


def _no_service() -> NoReturn:
    raise AssertionError("documentation calls no tool")


def commands() -> str:
    parts = ["# Commands", NOTE]
    for command in COMMANDS:
        parts.append(f"## {' '.join(['punchlist', *command])}\n\n```\n{_help(command)}\n```")
    return "\n\n".join(parts) + "\n"


@cache
def _program() -> Any:
    return typer.main.get_command(app)


def _help(command: list[str]) -> str:
    """As the program prints it in a terminal of 80 columns; in one process, since there are many."""
    found, context = _program(), None
    for name in ["punchlist", *command]:
        found = found if context is None else found.get_command(context, name)
        context = found.context_class(
            found, parent=context, info_name=name, terminal_width=78, **found.context_settings
        )
    return str(found.get_help(context)).strip()


PAGES = {"todos.svg": picture, "lifecycles.md": lifecycles, "tools.md": tools, "commands.md": commands}


def main() -> None:
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(), encoding="utf-8")
        print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
