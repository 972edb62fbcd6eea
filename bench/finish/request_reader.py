"""What the scripted model reads in a request: the calls made so far, what they returned, and the state of the list.

The model has no other memory. What a request does not show, it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from bench.finish.task import Step, WorkCall
from punchlist.models.model import CallReturn, ModelRequest, Reply, UserText

_STATE: Final = re.compile(r"<state>.*?</state>\n?", re.DOTALL)
_SHOWN_FILE: Final = re.compile(r"^(\S+):\n```\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
_APPENDS_TO: Final = re.compile(r">>\s*([\w./-]+)")
_ADDED: Final = re.compile(r"def \w+|CREATE \w+ \w+|Retro @Blue|Kestrels,Owls,2,2")


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call in the transcript. `failed` is None if there is no result yet."""

    position: int
    tool: str
    arguments: Mapping[str, Any]
    result: str
    failed: bool | None

    @property
    def succeeded(self) -> bool:
        return self.failed is False

    @property
    def path(self) -> str:
        return str(self.arguments.get("path", ""))

    @property
    def data(self) -> Mapping[str, Any]:
        """The result if it is a JSON object."""
        try:
            value = json.loads(self.result)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


class RequestReader:
    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.tools = {tool.name: tool for tool in request.tools}

    @cached_property
    def calls(self) -> list[MadeCall]:
        """The calls so far. A file that the loop shows counts as read."""
        results = {message.call_id: message for message in self.request.messages if isinstance(message, CallReturn)}
        found: list[MadeCall] = []
        for position, message in enumerate(self.request.messages):
            if isinstance(message, UserText):
                shown = _SHOWN_FILE.findall(message.text)
                found += [MadeCall(position, "read_file", {"path": path}, text, False) for path, text in shown]
            for call in message.calls if isinstance(message, Reply) else ():
                arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
                result = results.get(call.id)
                text, failed = ("", None) if result is None else (result.text, result.failed)
                found.append(MadeCall(position, call.tool, arguments, text, failed))
        return found

    @cached_property
    def own_text(self) -> str:
        """Everything that the model has said."""
        return "\n".join(message.text for message in self.request.messages if isinstance(message, Reply))

    @cached_property
    def user_text(self) -> str:
        return "\n".join(message.text for message in self.request.messages if isinstance(message, UserText))

    @cached_property
    def state(self) -> str:
        """The list as the loop shows it; empty if it is not in view."""
        found = _STATE.findall(self.user_text)
        return found[-1] if found else ""

    @property
    def may_claim_at_once(self) -> bool:
        """The instructions allow it to complete an item in the same reply as its last work call."""
        return "same reply as" in self.request.system

    def called(self, tool: str) -> Iterator[MadeCall]:
        return (call for call in self.calls if call.tool == tool)

    # --- the work of a step -------------------------------------------------------------------------------

    def unread(self, step: Step, since: int) -> list[str]:
        """Files that the step uses and that the context does not show."""
        return [path for path in (*step.uses, *_appended(step)) if not self._knows(path, since)]

    def _knows(self, path: str, since: int) -> bool:
        return any(
            call.path == path and call.position >= since and call.failed is not None
            for call in self.calls
            if call.tool in ("read_file", "write_file")
        )

    def unfinished(self, step: Step, since: int) -> list[WorkCall]:
        """The work calls that are still to be made."""
        return [call for call in step.work if not self._settled(call, since)]

    def _settled(self, wanted: WorkCall, since: int) -> bool:
        made = [call for call in self.calls if call.position >= since and _same(wanted, call)]
        if any(call.succeeded for call in made) or len([call for call in made if call.failed]) > 1:
            return True
        return self._in_place(wanted, since)

    def _in_place(self, wanted: WorkCall, since: int) -> bool:
        """The file, as last read, contains what the call would write: an earlier attempt has done it."""
        path, text = _effect(wanted)
        reads = [call for call in self.called("read_file") if call.path == path and call.position >= since]
        if not text or not reads or not reads[-1].succeeded or text not in reads[-1].result:
            return False
        found, old = reads[-1].result, str(wanted.arguments.get("old", ""))
        if wanted.tool == "write_file":
            return found.strip() == text.strip()
        return not old or old not in found or old in text


def _same(wanted: WorkCall, call: MadeCall) -> bool:
    """The same call, even if a number in its content differs."""
    keys = ("path", "old", "new") if wanted.tool == "edit_file" else ("path", "command")
    return wanted.tool == call.tool and all(wanted.arguments.get(key) == call.arguments.get(key) for key in keys)


def _appended(step: Step) -> list[str]:
    """Files that the step appends to: a careful model looks at them first."""
    commands = [str(call.arguments["command"]) for call in step.work if call.tool == "run_command"]
    return [path for command in commands for path in _APPENDS_TO.findall(command)[:1] if "cp " not in command]


def _effect(wanted: WorkCall) -> tuple[str, str]:
    """The file that a call changes, and a text that is in it afterwards and not before."""
    match wanted.tool:
        case "write_file":
            return str(wanted.arguments["path"]), str(wanted.arguments["content"])
        case "edit_file":
            return str(wanted.arguments["path"]), str(wanted.arguments["new"])
    command = str(wanted.arguments["command"])
    path, added = _APPENDS_TO.search(command), _ADDED.search(command)
    return (path[1], added[0]) if path and added else ("", "")
