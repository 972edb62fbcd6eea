"""The worker's side of the 120-day rehearsal: a clock that a file moves, and a model that keeps a record.

All processes of one rehearsal share `clock` (seconds to add to the real time), `first` (the first day) and `outage`
(until when no model is available, in simulated time). Each model request is one line of `requests.jsonl`; each pass of
the periodic tasks of a worker is one byte of `passes`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from punchlist.agent.definitions import LEAD, AgentDefinition
from punchlist.app import Services
from punchlist.engine import turns, worker
from punchlist.engine.workflows import cycle, execute
from punchlist.kernel.token_estimate import estimated_tokens
from punchlist.models.model import (
    CallReturn,
    FinishReason,
    ModelBusy,
    ModelInfo,
    ModelRequest,
    Reply,
    RequestedCall,
    TextListener,
    Usage,
    UserText,
)
from punchlist.storage.open import open_store

SLUG: Final = "long"
PILLARS: Final = ("build", "tests", "docs", "release", "support", "security")
DIRECTIVE: Final = "Builds come first this quarter"
ASKS: Final = "with approval"
"""In the title of a todo whose work needs a person's approval."""
ASKS_IN_PLANNING: Final = "support"
"""The owner of this pillar asks for an approval while it plans, once."""
DELEGATES, QUESTION = "with a delegate", "with question"
"""In the titles of todos: the owner delegates without waiting, or asks a person, who answers `region-N`."""
MEASURED: Final = "It takes 72 seconds."
"""The result of the delegated work."""
EDITED, RESUMED = "It is done twice.", "Use the small part."
"""What a person writes into a todo, and to the owner of an idle one."""
GREETING: Final = "How are we on day"
_HEARD: Final = (MEASURED, EDITED, RESUMED, GREETING)
_PROMPTS: Final = (
    *("## TODO Planning Cycle", "## Mission Review Cycle", "Execute: ", "Feedback on: ", "Results for: ", "Review: "),
    GREETING,
)
_OPEN_RECOMMENDATION: Final = re.compile(r"^(\d+)\. \[[a-z]+\]", re.MULTILINE)
_BACKLOG_ID: Final = re.compile(r"\(id ([0-9a-f-]{36})\): (?:low|medium)")


class MovedClock:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        if not self._file.exists():
            self._file.write_text("0")

    def __call__(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(self._file.read_text() or 0))

    def move_to(self, moment: datetime) -> None:
        ahead = (moment - self()).total_seconds()
        assert ahead > -5, f"the clock is {-ahead:.0f} s past {moment}"
        self._write(float(self._file.read_text()) + ahead)

    def _write(self, seconds: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.rename(self._file)


class RecordedModel:
    """Plays owner and Lead from the request alone, so that it survives a crash."""

    name = "scripted"
    info = ModelInfo(context_window=200_000)

    def __init__(self, agent: str, folder: Path, clock: MovedClock) -> None:
        self._agent = agent
        self._folder = folder
        self._clock = clock

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        del on_text
        now = self._clock()
        outage = self._folder / "outage"
        available = not outage.exists() or now >= datetime.fromisoformat(outage.read_text())
        prompt, replies = _prompt(request)
        state = request.messages[-1].text if len(request.messages) > (request.stable or 0) else ""
        self._record(now, request, prompt, state, available)
        if not available:
            raise ModelBusy("The model is overloaded.")
        text, calls = self._reply(prompt, replies, state, request, now)
        made = tuple(RequestedCall(f"call-{number}", tool, given) for number, (tool, given) in enumerate(calls))
        return Reply(text, made, FinishReason.TOOL_CALLS if made else FinishReason.STOP, Usage(100, 10))

    def _record(self, now: datetime, request: ModelRequest, prompt: str, state: str, available: bool) -> None:
        line = {
            "at": now.isoformat(),
            "agent": self._agent,
            "prompt": prompt[:60],
            "stateTokens": estimated_tokens(state),
            "promptTokens": estimated_tokens(prompt),
            "tokens": estimated_tokens("".join(getattr(message, "text", "") for message in request.messages)),
            "directive": DIRECTIVE in state,
            "summary": any("Summary of the" in getattr(message, "text", "") for message in request.messages),
            "heard": [words for words in _HEARD if words in prompt],
            "available": available,
        }
        with (self._folder / "requests.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _reply(
        self, prompt: str, replies: int, state: str, request: ModelRequest, now: datetime
    ) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        if prompt.startswith("## TODO Planning"):
            first = datetime.fromisoformat((self._folder / "first").read_text())
            return ("Planned.", []) if replies else ("", _plan(prompt, now, (now - first).days + 1))
        if prompt.startswith("## Mission Review"):
            return _lead(replies, state, request)
        if self._agent == "coder":
            return MEASURED, []
        if prompt.startswith("Results for: "):
            return f"Measured: {MEASURED}", []
        if prompt.startswith(("Execute: ", "Feedback on: ")):
            return _work(prompt, replies, request)
        if prompt.startswith("Review: ") and not replies:
            found = re.search(r"todoId ([0-9a-f-]{36})", prompt)
            assert found is not None
            return "", [("mission_todo_complete", {"missionSlug": SLUG, "todoId": found[1], "outcome": "It is done."})]
        return "Noted.", []


def _work(prompt: str, replies: int, request: ModelRequest) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    title = prompt.splitlines()[0]
    if asked := re.search(rf"{QUESTION} (\d+)", title):
        return _ask(replies, f"region-{asked[1]}", request)
    if replies:
        return "Done, with evidence.", []
    if DELEGATES in title:
        return "", [("delegate", {"type": "coder", "mission": "Measure it.", "async": True})]
    if ASKS in title:
        return "", [("write_file", {"path": f"{prompt.split()[1]}.txt", "content": "done\n"})]
    return "", [("list_directory", {"path": "."})]


def _ask(replies: int, answer: str, request: ModelRequest) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """An item of the plan waits for a person; with the answer, it is completed."""
    if replies == 0:
        item = {"title": "Roll out", "blockedBy": [{"person": f"Which region for {answer[7:]}?"}]}
        return "", [("create_todo", {"items": [item]})]
    if answer not in "".join(getattr(message, "text", "") for message in request.messages):
        return "It waits.", []
    returned = [message for message in request.messages if isinstance(message, CallReturn)]
    if returned and returned[-1].tool == "complete_todo" and not returned[-1].failed:
        return f"Rolled out to {answer}.", []
    work = ("list_directory", {"path": "."})
    return "", [work, ("complete_todo", {"todoId": "1", "outcome": f"Rolled out to {answer}."})]


def _prompt(request: ModelRequest) -> tuple[str, int]:
    """The request of the turn, and how many replies it has had."""
    replies = 0
    for message in reversed(request.messages[: request.stable]):
        if isinstance(message, Reply):
            replies += 1
        if isinstance(message, UserText) and message.text.startswith(_PROMPTS):
            return message.text, replies
    last = [message.text for message in request.messages if isinstance(message, UserText)]
    return last[-1] if last else "", replies


def _plan(prompt: str, now: datetime, day: int) -> list[tuple[str, dict[str, Any]]]:
    """One todo every third day; some need an approval. Backlog items are recommended for promotion."""
    found = re.search(r"state of the (\w+) pillar", prompt)
    pillar = found[1].lower() if found else PILLARS[0]
    number = PILLARS.index(pillar)
    calls: list[tuple[str, dict[str, Any]]] = []
    if (day + number) % 3 == 1:
        due = (now + timedelta(days=2)).date().isoformat()
        title = f"{pillar} {day}{f' {ASKS}' if (day + 2 * number) % 12 == 4 else ''}"
        new = {"title": title, "completionCriteria": "It is done.", "deadline": due, "requestId": f"{pillar}-{day}"}
        calls.append(("mission_todo_create", {"missionSlug": SLUG, "pillarSlug": pillar, **new}))
    if day % 4 == number % 4 and (waiting := _BACKLOG_ID.search(prompt.partition("### Backlog")[2])):
        given = {"missionSlug": SLUG, "todoId": waiting[1], "action": "promote", "reason": "It is time."}
        calls.append(("mission_todo_update", given))
    if pillar == ASKS_IN_PLANNING and day == 9:
        calls.append(("write_file", {"path": "plan.txt", "content": "a plan\n"}))
    return calls or [("mission_todo_list", {"missionSlug": SLUG})]


def _lead(replies: int, state: str, request: ModelRequest) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    if replies == 0:
        decide = {"missionSlug": SLUG, "decision": "decline", "reason": "Not now."}
        numbers = [int(found) for found in _OPEN_RECOMMENDATION.findall(state)]
        decided = [("mission_recommendation_decide", {**decide, "number": number}) for number in numbers[::2]]
        return "", [*decided, ("mission_todo_list", {"missionSlug": SLUG, "status": "pending"})]
    if replies == 1:
        results = [one for one in request.messages if isinstance(one, CallReturn) and one.tool == "mission_todo_list"]
        items = json.loads(results[-1].text)["items"] if results and not results[-1].failed else []
        start = {"missionSlug": SLUG, "action": "start", "reason": "It is next."}
        started = [("mission_todo_update", {**start, "todoId": item["id"]}) for item in items[:3]]
        if started:
            return "", started
    return "The cycle is reviewed.", []


def simulate(services: Services, folder: Path) -> Callable[[AgentDefinition], RecordedModel]:
    """Give the services of a worker the moved clock, and short intervals: a day has to pass within a second."""
    clock = MovedClock(folder)
    services._store = open_store(services.settings.database, clock=clock, trust=services.trust)
    worker._RECOVERY_INTERVAL = 0.1  # type: ignore[misc]
    worker._POLL_INTERVAL = 0.02  # type: ignore[misc]
    for module in (turns, cycle, execute):
        setattr(module, "POLL_INTERVAL", 0.02)  # noqa: B010 - a constant of each of them
    return lambda agent: RecordedModel(agent.name, folder, clock)


def count_passes(ours: worker.Worker, folder: Path) -> None:
    run = ours._periodic.run

    async def counted() -> None:
        await run()
        with (folder / "passes").open("ab") as file:
            file.write(b".")

    ours._periodic.run = counted  # type: ignore[method-assign]


def is_lead(line: dict[str, Any]) -> bool:
    return bool(line["agent"] == LEAD)


def requests(folder: Path) -> list[dict[str, Any]]:
    file = folder / "requests.jsonl"
    # A worker that was killed may have left half a line.
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def passes(folder: Path) -> int:
    file = folder / "passes"
    return os.stat(file).st_size if file.exists() else 0
