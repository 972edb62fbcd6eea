"""Running one call: whatever the tool does, the answer is a result or an error in words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
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
"""Seconds before a call that failed for a passing reason is tried again."""

Show = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class ExecutionEnvironment:
    """What calls run in: where long output goes, what must not be shown, how long they may take."""

    output_folder: Path | None = None
    redact: Callable[[str], str] = str
    time_limit: float = DEFAULT_TIME_LIMIT


class RunningCall:
    """What the tool sees of its call (`tool.Running`)."""

    __slots__ = ("_loop", "_redact", "_show", "_thread", "call_id", "deadline", "output_folder")

    def __init__(
        self,
        call_id: str,
        around: ExecutionEnvironment,
        deadline: float | None,
        show: Show,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.call_id = call_id
        self.output_folder = around.output_folder
        self.deadline = deadline
        self._redact = around.redact
        self._show = show
        self._loop = loop
        self._thread = get_ident()

    def output(self, text: str) -> None:
        if get_ident() == self._thread:
            self._show(self.call_id, self._redact(text))
        else:
            self._loop.call_soon_threadsafe(self._show, self.call_id, self._redact(text))


async def execute(
    tool: AgentTool, arguments: Arguments, running: RunningCall, around: ExecutionEnvironment
) -> ToolResult | CallError:
    try:
        value = await _run(tool, arguments, running)
        return bounded_result(
            value, redact=around.redact, keep=lambda text: _keep(around.output_folder, running.call_id, text)
        )
    except PunchlistError as error:
        return CallError(error.code, shorten(around.redact(str(error))).text)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:
        told = excerpt(around.redact(str(error)), 1_000)
        return CallError("tool_crashed", f"{tool.name} failed: {type(error).__name__}{f': {told}' if told else ''}")


async def _run(tool: AgentTool, arguments: Arguments, running: RunningCall) -> Any:
    """Once more where the failure passes and nothing can be done twice (C8)."""
    try:
        return await tool.run(arguments, running)
    except (TransientFailure, ConnectionLost, ConnectionError, StoreBusy) as failure:
        if not isinstance(failure, TransientFailure) and tool.effect is not Effect.READ:
            raise
        running.output(f"{failure} Trying once more.\n")
        await asyncio.sleep(RETRY_DELAY)
        return await tool.run(arguments, running)


def _keep(folder: Path | None, call_id: str, text: str) -> Path | None:
    """The file with the whole text; None when it cannot be kept, which must not lose the result."""
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


MAX_RESULT_LENGTH: Final = 30_000
"""Characters of a result that a model gets; half from the beginning, half from the end."""

_BOUND: Final = MAX_RESULT_LENGTH + 1_000
"""With the words about what was left out."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_TOO_DEEP: Final = "The tool returned something nested too deeply for JSON."
_SCALARS: Final = (str, int, float, bool, type(None))


def bounded_result(value: Any, *, redact: Callable[[str], str], keep: Callable[[str], Path | None]) -> ToolResult:
    """The value as text and, if it was structured, as data. `keep` puts a long text on disk."""
    if type(value) is int or value is None:
        return ToolResult(_json(value), value)
    if isinstance(value, ToolResult):
        # Made by a tool of ours, which knows where the whole text is; bounded all the same.
        return (
            replace(value, text=shorten(redact(value.text)).text) if len(value.text) > _BOUND else _safe(value, redact)
        )
    if not isinstance(value, str):
        # Before it is written: JSON may write a secret in another way.
        value = _redacted(value, redact)
    text = redact(value) if isinstance(value, str) else _json(value)
    if len(text) > MAX_RESULT_LENGTH:
        return shorten(text, keep(text))
    return ToolResult(text) if isinstance(value, str) else ToolResult(text, value)


def _safe(result: ToolResult, redact: Callable[[str], str]) -> ToolResult:
    return replace(result, text=redact(result.text), data=redact_value(result.data, redact))


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    try:
        return redact_value(value, redact)
    except RecursionError:
        raise ToolFailure(_TOO_DEEP) from None


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


def shorten(text: str, kept: Path | None = None) -> ToolResult:
    """The beginning and the end of a text that is too long; one that is not, as it is."""
    if len(text) <= MAX_RESULT_LENGTH:
        return ToolResult(text)
    head, tail = text[: MAX_RESULT_LENGTH // 2], text[-(MAX_RESULT_LENGTH // 2) :]
    return ToolResult(f"{head}{_gap(len(text) - len(head) - len(tail), kept)}{tail}", output_file=_name(kept))


def join_ends(head: str, left_out: int, tail: str, kept: Path | None) -> ToolResult:
    """A result of which only the beginning and the end were kept in memory."""
    if not left_out:
        return ToolResult(head + tail)
    return ToolResult(f"{head}{_gap(left_out, kept)}{tail}", output_file=_name(kept))


def _name(kept: Path | None) -> str | None:
    return str(kept) if kept else None


def _gap(left_out: int, kept: Path | None) -> str:
    where = f"; all of it is in {kept}" if kept else ""
    return f"\n… [{left_out:,} characters left out{where}] …\n"


def _json(value: Any) -> str:
    if type(value) is int:
        return str(value)
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise ToolFailure(_TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        raise ToolFailure(f"The tool returned {_kind(value)} that is not JSON ({error}).") from None


def _kind(value: Any) -> str:
    return json_type(value) if isinstance(value, (*_SCALARS, list, dict)) else f"a {type(value).__name__}"
