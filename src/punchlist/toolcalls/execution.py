"""Runs one call: whatever the tool does, the outcome is a bounded, redacted `ToolResult` or a `CallError`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import get_ident
from typing import Any, Final

from punchlist.errors import PunchlistError, StoreBusy
from punchlist.kernel.text import excerpt, json_type
from punchlist.kernel.tool import ToolResult
from punchlist.toolcalls.model import CallError
from punchlist.toolcalls.tool import AgentTool, Arguments, ConnectionLost, Effect, ToolFailure, TransientFailure

DEFAULT_TIME_LIMIT: Final = 120.0
RETRY_DELAY: Final = 0.2
"""Seconds before a call that failed transiently is tried again."""
MAX_RESULT_LENGTH: Final = 30_000
"""Characters of a result that a model receives: half from the beginning, half from the end."""
_MAX_SHORTENED_LENGTH: Final = MAX_RESULT_LENGTH + 1_000
"""Including the note about the omitted part."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_TOO_DEEP: Final = "The tool returned a value that is nested too deeply for JSON."
_JSON_TYPES: Final = (str, int, float, bool, type(None), list, dict)

OnOutput = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class ExecutionEnvironment:
    output_folder: Path | None = None
    """Where results that are too long for a model are kept in full."""
    redact: Callable[[str], str] = str
    time_limit: float = DEFAULT_TIME_LIMIT


@dataclass(frozen=True, slots=True)
class RunningCall:
    """The `ToolContext` of one call."""

    call_id: str
    environment: ExecutionEnvironment
    deadline: float | None
    on_output: OnOutput
    loop: asyncio.AbstractEventLoop
    thread: int = field(default_factory=get_ident)
    """The thread of the event loop."""

    @property
    def output_folder(self) -> Path | None:
        return self.environment.output_folder

    def output(self, text: str) -> None:
        shown = self.environment.redact(text)
        if get_ident() == self.thread:
            self.on_output(self.call_id, shown)
        else:
            self.loop.call_soon_threadsafe(self.on_output, self.call_id, shown)


async def execute(tool: AgentTool, arguments: Arguments, running: RunningCall) -> ToolResult | CallError:
    redact = running.environment.redact
    try:
        value = await _run(tool, arguments, running)
        return bounded_result(value, redact, lambda text: _keep(running.output_folder, running.call_id, text))
    except PunchlistError as error:
        return CallError(error.code, shorten(redact(str(error))).text)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        detail = excerpt(redact(str(error)), 1_000)
        return CallError("tool_crashed", f"{tool.name} failed: {type(error).__name__}{f': {detail}' if detail else ''}")


async def _run(tool: AgentTool, arguments: Arguments, running: RunningCall) -> Any:
    """Run the tool; once more when the failure is transient and a second run cannot do harm (C8)."""
    try:
        return await tool.run(arguments, running)
    except (TransientFailure, ConnectionLost, ConnectionError, StoreBusy) as failure:
        if not isinstance(failure, TransientFailure) and tool.effect is not Effect.READ:
            raise
        running.output(f"{failure} Trying again.\n")
        await asyncio.sleep(RETRY_DELAY)
        return await tool.run(arguments, running)


def _keep(folder: Path | None, call_id: str, text: str) -> Path | None:
    """Write the full text to a file. None when that is not possible: the call succeeds all the same."""
    if folder is None:
        return None
    path = output_file(folder, call_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError:
        return None
    return path


def output_file(folder: Path, call_id: str) -> Path:
    return folder / f"{call_id}.txt"


# --- results ---------------------------------------------------------------------------------------------


def bounded_result(value: Any, redact: Callable[[str], str], keep: Callable[[str], Path | None]) -> ToolResult:
    """The value of a tool as text and, if it is structured, as data. `keep` stores a text that is too long."""
    if type(value) is int or value is None:
        return ToolResult(_to_json(value), value)
    if isinstance(value, ToolResult):
        # The tool has bounded it and knows where the full text is; enforce the limit all the same.
        if len(value.text) > _MAX_SHORTENED_LENGTH:
            return replace(value, text=shorten(redact(value.text)).text)
        return replace(value, text=redact(value.text), data=redact_value(value.data, redact))
    if isinstance(value, str):
        text, data = redact(value), None
    else:
        # Redacted before it is encoded: JSON can spell a secret differently.
        try:
            data = redact_value(value, redact)
        except RecursionError:
            raise ToolFailure(_TOO_DEEP) from None
        text = _to_json(data)
    return shorten(text, keep(text)) if len(text) > MAX_RESULT_LENGTH else ToolResult(text, data)


def redact_value(value: Any, redact: Callable[[str], str]) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {
                redact(key) if isinstance(key, str) else key: redact_value(item, redact) for key, item in value.items()
            }
        case list() | tuple():
            return [redact_value(item, redact) for item in value]
    return value


def shorten(text: str, full_text: Path | None = None) -> ToolResult:
    """The beginning and the end of a text that is too long."""
    if len(text) <= MAX_RESULT_LENGTH:
        return ToolResult(text)
    half = MAX_RESULT_LENGTH // 2
    return join_ends(text[:half], len(text) - 2 * half, text[-half:], full_text)


def join_ends(head: str, omitted: int, tail: str, full_text: Path | None) -> ToolResult:
    """A result of which only the beginning and the end are left, with a note about the rest."""
    if not omitted:
        return ToolResult(head + tail)
    where = f"; the full text is in {full_text}" if full_text else ""
    text = f"{head}\n… [{omitted:,} characters omitted{where}] …\n{tail}"
    return ToolResult(text, output_file=str(full_text) if full_text else None)


def _to_json(value: Any) -> str:
    if type(value) is int:
        return str(value)
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise ToolFailure(_TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        kind = json_type(value) if isinstance(value, _JSON_TYPES) else f"a {type(value).__name__}"
        raise ToolFailure(f"The tool returned {kind} that is not JSON ({error}).") from None
