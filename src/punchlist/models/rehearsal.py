"""A model that replays the replies of a YAML file, for demonstrations, examples and tests.

    replies:
      - text: I plan first.
        calls:
          - tool: create_todo
            arguments: {items: [{title: Look around}]}
      - calls:
          - {tool: start_todo, arguments: {todoId: "{{ created[0].id }}"}}
      - {fault: overloaded}
      - {text: All done., finish: stop}
    agents:
      researcher:
        - text: I found it.
    scenes:
      - agent: pillar-owner
        when: "Execute: Profile .* TODO id (?P<todo>[0-9a-f-]+)"
        replies:
          - text: "{{ todo }} is done."

A scene holds the replies of an agent after a message that matches `when`, a regular expression. The position
in a scene is derived from the request alone, so that it survives a crash; replies outside of scenes start
again with each process.

With `prices: {input: 3, output: 15}`, dollars per million tokens, replies have a cost, as those of a real model.

`delay` is how many seconds a reply takes to begin, `stream` how many its text takes to arrive.

A rehearsal runs through the same loop, scheduler and storage as a real model. `{{ … }}` is a path into the
results of earlier calls (the newest result that has the path) or a group of `when`. When the replies run
out, the model says so and stops.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from punchlist.errors import ConfigError
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import excerpt, json_type
from punchlist.kernel.token_estimate import estimated_tokens
from punchlist.models.model import (
    CallReturn,
    FinishReason,
    Model,
    ModelBusy,
    ModelError,
    ModelInfo,
    ModelRefused,
    ModelRequest,
    Reply,
    RequestedCall,
    TextListener,
    Usage,
    UserText,
)

T = TypeVar("T")
FAULTS: Final[Mapping[str, ModelError]] = {
    "rate_limit": ModelBusy("Too many requests.", retry_after=0.0),
    "overloaded": ModelBusy("The model is overloaded.", retry_after=0.0),
    "dropped": ModelBusy("The server closed the stream before the reply was complete."),
    "unauthorized": ModelRefused("The key is wrong."),
    "bad_request": ModelRefused("The request is not valid."),
}
_KEYS: Final = ("text", "calls", "finish", "fault", "tokens", "delay", "stream", "cached_tokens")
_MAX_SIZE: Final = 1_000_000
_REFERENCE: Final = re.compile(r"\{\{\s*([A-Za-z_][\w.\[\]]*)\s*\}\}")
_WORD: Final = re.compile(r"\s*\S+\s*|\s+")
_STEP: Final = re.compile(r"\w+")
ENDED: Final = "The rehearsal has no more replies."


@dataclass(frozen=True, slots=True)
class RehearsedReply:
    """One reply of the file, before references are filled in."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    finish: FinishReason | None = None
    fault: str | None = None
    tokens: int = 0
    delay: float = 0.0
    stream: float = 0.0
    """Seconds over which the text arrives, word by word."""
    cached_tokens: int = 0
    """Of `tokens`."""


@dataclass(frozen=True, slots=True)
class Scene:
    agent: str | None
    when: re.Pattern[str]
    replies: tuple[RehearsedReply, ...]


@dataclass(frozen=True, slots=True)
class RehearsalScript:
    replies: tuple[RehearsedReply, ...]
    agents: Mapping[str, tuple[RehearsedReply, ...]]
    scenes: tuple[Scene, ...] = ()
    prices: tuple[float, float] | None = None
    """Of a million input and output tokens, in dollars."""


class Rehearsal:
    """The model of one agent. Agents named in the file have their own replies; the others share `replies`."""

    def __init__(self, script: RehearsalScript, agent: str = "", name: str = "rehearsal") -> None:
        self.name = name
        self.info = ModelInfo(1_000_000, *(script.prices or ()))
        self._script = script
        self._agent = agent
        self._replies = iter(script.agents.get(agent, script.replies))
        self._results: dict[str, Mapping[str, Any]] = {}

    def for_agent(self, agent: str) -> Rehearsal:
        scripted = {*self._script.agents, *(scene.agent for scene in self._script.scenes)}
        return Rehearsal(self._script, agent, self.name) if agent in scripted else self

    def _next(self, request: ModelRequest) -> tuple[RehearsedReply, Mapping[str, Any]]:
        """The next reply, and the groups of the scene's pattern."""
        replies = 0
        for message in reversed(request.messages):
            if isinstance(message, Reply):
                replies += 1
            if not isinstance(message, UserText):
                continue
            for scene in self._script.scenes:
                if scene.agent in (None, self._agent) and (match := scene.when.search(message.text)):
                    reply = scene.replies[replies] if replies < len(scene.replies) else RehearsedReply(text=ENDED)
                    return reply, match.groupdict()
        return next(self._replies, RehearsedReply(text=ENDED)), {}

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        reply, groups = self._next(request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.fault is not None:
            raise FAULTS[reply.fault]
        # Results stay known after compaction: a script is written without regard to it.
        self._results |= _results(request)
        results = [groups, *reversed(self._results.values())]
        text = _filled(reply.text, results)
        if on_text is not None and text:
            await _stream(text, reply.stream, on_text)
        calls = tuple(
            RequestedCall(f"call_{new_id()[-12:]}_{number}", tool, _filled(arguments, results))
            for number, (tool, arguments) in enumerate(reply.calls)
        )
        finish = reply.finish or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP)
        return Reply(text, calls, finish, Usage(reply.tokens, estimated_tokens(text), reply.cached_tokens))


async def _stream(text: str, seconds: float, on_text: TextListener) -> None:
    words = _WORD.findall(text) if seconds else [text]
    for word in words:
        on_text(word)
        if seconds:
            await asyncio.sleep(seconds / len(words))


def for_agent(model: Model, agent: str) -> Model:
    """The model for one agent: a rehearsal can have separate replies for each agent."""
    return model.for_agent(agent) if isinstance(model, Rehearsal) else model


def _results(request: ModelRequest) -> dict[str, Mapping[str, Any]]:
    """The results that are JSON objects, by call id, oldest first."""
    found: dict[str, Mapping[str, Any]] = {}
    for message in request.messages:
        if isinstance(message, CallReturn) and not message.failed:
            try:
                value = json.loads(message.text)
            except ValueError:
                continue
            if isinstance(value, dict):
                found[message.call_id] = value
    return found


def _filled(value: Any, results: Sequence[Mapping[str, Any]]) -> Any:
    match value:
        case str():
            whole = _REFERENCE.fullmatch(value)
            if whole:
                return _look_up(whole[1], results)
            return _REFERENCE.sub(lambda found: str(_look_up(found[1], results)), value)
        case dict():
            return {key: _filled(item, results) for key, item in value.items()}
        case list():
            return [_filled(item, results) for item in value]
    return value


def _look_up(path: str, results: Sequence[Mapping[str, Any]]) -> Any:
    steps = [int(step) if step.isdigit() else step for step in _STEP.findall(path)]
    for result in results:
        value: Any = result
        try:
            for step in steps:
                value = value[step]
        except (KeyError, IndexError, TypeError):
            continue
        return value
    raise ModelRefused(f"The rehearsal refers to {path!r}, which no earlier result has.")


def load_rehearsal(path: Path) -> RehearsalScript:
    import yaml

    try:
        if path.stat().st_size > _MAX_SIZE:
            raise ConfigError(f"{path}: is larger than {_MAX_SIZE:,} bytes.")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{path}{where}: is not valid YAML ({excerpt(str(error.problem), 200)}).") from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path}: is not valid YAML ({excerpt(str(error), 200)}).") from None
    if isinstance(content, list):
        content = {"replies": content}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must be a list of replies, got {json_type(content)}.")
    for key in content:
        if key not in ("replies", "agents", "scenes", "prices"):
            raise ConfigError(
                f"{path}: {excerpt(str(key))!r} is not a known key. Use: replies, agents, scenes, prices."
            )
    agents = content.get("agents") or {}
    if not isinstance(agents, dict):
        raise ConfigError(f"{path}: agents: must be a table of lists, got {json_type(agents)}.")
    return RehearsalScript(
        _parse_replies(path, "replies", content.get("replies") or []),
        {str(name): _parse_replies(path, f"agents.{name}", lines) for name, lines in agents.items()},
        _parse_list(path, "scenes", content.get("scenes") or [], _scene),
        _parse_prices(path, content.get("prices")),
    )


def _parse_prices(path: Path, given: Any) -> tuple[float, float] | None:
    if given is None:
        return None
    prices = [given.get(name) for name in ("input", "output")] if isinstance(given, dict) and len(given) == 2 else []
    checked = [float(price) for price in prices if isinstance(price, int | float) and 0 <= price < 1e6]
    if len(checked) != 2:
        raise ConfigError(f"{path}: prices: must be {{input: N, output: N}}, in dollars per million tokens.")
    return checked[0], checked[1]


def _scene(path: Path, where: str, scene: Any) -> Scene:
    if not isinstance(scene, dict) or not {"when", "replies"} <= set(scene) <= {"when", "replies", "agent"}:
        raise ConfigError(f"{path}: {where}: must be a table with when, replies and optionally agent.")
    try:
        when = re.compile(str(scene["when"]), re.DOTALL)
    except re.error as error:
        raise ConfigError(f"{path}: {where}: when is not a valid regular expression ({error}).") from None
    replies = _parse_replies(path, f"{where}.replies", scene["replies"])
    if any(reply.fault for reply in replies):
        # A fault leaves no reply to count, so the position in the scene would never advance.
        raise ConfigError(f"{path}: {where}: a scene cannot contain faults.")
    agent = scene.get("agent")
    return Scene(str(agent) if agent is not None else None, when, replies)


def _parse_replies(path: Path, where: str, lines: Any) -> tuple[RehearsedReply, ...]:
    return _parse_list(path, where, lines, _parse_reply)


def _parse_list(path: Path, where: str, lines: Any, parse: Callable[[Path, str, Any], T]) -> tuple[T, ...]:
    if not isinstance(lines, list):
        raise ConfigError(f"{path}: {where}: must be a list, got {json_type(lines)}.")
    return tuple(parse(path, f"{where}[{number}]", line) for number, line in enumerate(lines, start=1))


def _parse_reply(path: Path, where: str, line: Any) -> RehearsedReply:
    def wrong(problem: str) -> ConfigError:
        return ConfigError(f"{path}: {where}: {problem}.")

    if isinstance(line, str):
        return RehearsedReply(text=line)
    if not isinstance(line, dict):
        raise wrong(f"must be text or a table, got {json_type(line)}")
    for key in line:
        if key not in _KEYS:
            raise wrong(f"{excerpt(str(key))!r} is not a known key. Use: {', '.join(_KEYS)}")
    fault, finish = line.get("fault"), line.get("finish")
    if fault is not None and fault not in FAULTS:
        raise wrong(f"fault must be one of {', '.join(FAULTS)}")
    if finish is not None and finish not in list(FinishReason):
        raise wrong(f"finish must be one of {', '.join(FinishReason)}")
    calls = line.get("calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) and "tool" in call for call in calls):
        raise wrong("calls must be a list of {tool, arguments}")
    return RehearsedReply(
        str(line.get("text") or ""),
        tuple((str(call["tool"]), call.get("arguments") or {}) for call in calls),
        FinishReason(finish) if finish else None,
        fault,
        int(line.get("tokens") or 0),
        float(line.get("delay") or 0.0),
        float(line.get("stream") or 0.0),
        int(line.get("cached_tokens") or 0),
    )
