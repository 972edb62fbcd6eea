"""The tools that every agent of ours has."""

from __future__ import annotations

from collections.abc import Callable

from punchlist.tools.command import command_tool
from punchlist.tools.files import file_tools
from punchlist.tools.function_tool import FunctionTool
from punchlist.tools.search import search_tools
from punchlist.tools.workspace import Workspace


def native_tools(workspace: Workspace, redact: Callable[[str], str] = str) -> list[FunctionTool]:
    return [*file_tools(workspace), *search_tools(workspace, redact), command_tool(workspace, redact)]
