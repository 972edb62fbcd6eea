"""The terminal application in a pseudo-terminal: first frame, keys, memory, long conversations, changes, rest.

A key counts as painted when its letter leaves the application. While keys are measured, another process streams 200
tokens per second and the output of ten calls into the conversation, and changes its list five times per second.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Final

from bench.figures import Bench, Figure, Limits
from bench.processes import PUNCHLIST, PYTHON, compile_all, environment
from bench.terminal import Terminal
from punchlist.app import Services
from punchlist.config import load
from punchlist.conversations import repository
from punchlist.conversations.model import MessageRole, NewMessage, Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store

FIRST_FRAME: Final = 1.5
KEY_P95: Final = 0.050
OPENING: Final = 0.300
CHANGE: Final = 0.200
REST: Final = 0.02
MEMORY: Final = 15_000_000
"""How much more memory 100,000 messages may need than 1,000: caches of the allocator."""
TOKENS: Final = 200
CALLS: Final = 10
AGENT: Final = Actor(Role.SUPERVISOR, "supervisor")
EMPTY: Final = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("punchlist")
Empty().run()
"""
WRITER: Final = """
import json, os, sys, time
from punchlist.agent.events import TextDelta, ToolOutput
from punchlist.agent.live_output import LiveOutput
from punchlist.conversations.model import MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.kernel.processes import process_identity
from punchlist.app import Services
from punchlist.config import load
url, session, tokens, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
services = Services(load(environment={**os.environ, "PUNCHLIST_DATABASE_URL": url}))
output, conversations = LiveOutput(services.store), services.conversations
person = Scope(session, Actor(Role.PERSON, "bench"))
services.todos.add(person, ["Build"], reason="bench")
scope = Scope(session, Actor(Role.SUPERVISOR, "supervisor"))
turn = conversations.begin_turn(scope, reason="bench", owner=process_identity(os.getpid()))
listen = output.listener(session)
calls = [{"id": f"call{n}", "tool": "run_command", "arguments": {"command": f"make part{n}"}} for n in range(count)]
content = json.dumps({"text": "Working.", "calls": calls})
conversations.add_message(scope, MessageRole.ASSISTANT, content, kind="reply", turn_id=turn.id)
print("ready", flush=True)
begin, sent = time.monotonic(), 0
while os.getppid() != 1:
    time.sleep(0.01)
    due = int((time.monotonic() - begin) * tokens)
    while sent < due:
        sent += 1
        listen(TextDelta(session, turn.id, "word " if sent % 40 else f"\\n\\n- **point** {sent} with `code` "))
        listen(ToolOutput(session, turn.id, f"call{sent % count}", f"line {sent} of the output\\n"))
        if sent % (tokens // 5) == 0:
            services.todos.edit(person, "1", f"Build part {sent}", reason="bench")
"""
LETTERS: Final = "абвгдежзийклмнопрстуфхцчшщъыьэюяљњћђџѓќѕіїєґўαβγδεζηθικλμνξοπρστυφχψω"


def measure(bench: Bench) -> Iterator[Figure]:
    quick = bench.sizes.rounds < 1_000
    rounds, many = (3, 2_000) if quick else (15, 100_000)
    compile_all()
    for name in [name for name in os.environ if name.startswith(("PUNCHLIST_", "XDG_"))]:
        del os.environ[name]
    os.environ["HOME"] = str(bench.folder)
    url = bench.folder / "tui.db"
    with closing(open_store(str(url))) as store:
        for session, messages in (("few", 1_000), ("many", many)):
            scope = Scope(session, AGENT)
            Conversations(store).add_message(scope, MessageRole.USER, "The first one.")
            with store.write() as tx:
                said = [NewMessage("user", "text", f"Question {number}") for number in range(messages - 1)]
                repository.add_messages(tx, session, None, [*said, NewMessage("assistant", "text", "newest")])
    yield _first_frame(bench.folder, url, rounds)
    yield _keys(bench.folder, url, rounds)
    yield _opening(bench.folder, url, rounds)
    yield _changes(bench.folder, url, 10 if quick else 60)
    yield from _rest(bench.folder, url)
    _memory(bench.folder, url, 20 if quick else 150)


def _chat(folder: Path, url: Path, session: str) -> Terminal:
    return Terminal([PUNCHLIST, "chat", "-s", session], folder, environment(folder, url, session))


def _painted(command: Sequence[str], folder: Path, url: Path, *texts: str) -> float:
    """Seconds from the start of a program until it has painted these texts."""
    with Terminal(command, folder, environment(folder, url, "bench")) as terminal:
        return terminal.until(*texts) - terminal.begun


def _pairs(
    first: Sequence[str], second: Sequence[str], folder: Path, url: Path, rounds: int, *texts: Sequence[str]
) -> list[list[float]]:
    times: list[list[float]] = [[], []]
    for number in range(-1, rounds):
        for place in (0, 1) if number % 2 else (1, 0):
            taken = _painted((first, second)[place], folder, url, *texts[place])
            if number >= 0:
                times[place].append(taken)
    return times


def _first_frame(folder: Path, url: Path, rounds: int) -> Figure:
    ours, empty = _pairs([PUNCHLIST], [PYTHON, "-c", EMPTY], folder, url, rounds, ["punchlist"], ["punchlist"])
    name = "tui: first frame of Home, against an empty Textual application"
    return Figure(name, ours, empty, Limits(times=FIRST_FRAME))


def _opening(folder: Path, url: Path, rounds: int) -> Figure:
    many_command, none_command = [PUNCHLIST, "chat", "-s", "many"], [PUNCHLIST, "chat", "-s", "nothing"]
    texts = ["newest", "auto 0"], ["none yet", "auto 0"]
    many, empty = _pairs(many_command, none_command, folder, url, rounds, *texts)
    return Figure("tui: opening 100,000 messages, against none", many, empty, Limits(above=OPENING))


def _keys(folder: Path, url: Path, rounds: int) -> Figure:
    """The 95th percentile of each round of keys."""
    command = [sys.executable, "-c", WRITER, str(url), "streamed", str(TOKENS), str(CALLS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(folder, url, "streamed")) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            with _chat(folder, url, "streamed") as terminal:
                terminal.until("word word", "working")
                found = [_p95(_press(terminal)) for _ in range(rounds)]
        finally:
            writer.kill()
    return Figure(
        f"tui: key to paint, {TOKENS} tokens/s, {CALLS} calls printing, p95", found, limits=Limits(best=KEY_P95)
    )


def _press(terminal: Terminal) -> list[float]:
    times = []
    for letter in LETTERS:
        pressed = terminal.press(letter)
        times.append(terminal.until(letter) - pressed)
        terminal.read(0.03)
    terminal.press("\x15")
    terminal.read(0.2)
    return times


def _changes(folder: Path, url: Path, rounds: int) -> Figure:
    services = Services(load(environment=environment(folder, url, "changed")))
    scope, delays = Scope("changed", Actor(Role.PERSON, "bench")), []
    with closing(services), _chat(folder, url, "changed") as terminal:
        terminal.until("auto 0")
        services.todos.add(scope, ["first"], reason="bench")
        terminal.until("first")
        for number in range(rounds):
            # Not a multiple of any interval.
            terminal.read(0.3 + number % 7 / 100)
            terminal.forget()
            services.todos.edit(scope, "1", f"item-{number}", reason="bench")
            committed = perf_counter()
            delays.append(terminal.until(f"item-{number}") - committed)
    return Figure(
        "tui: a list change of another process on the screen, p95", [_p95(delays)], limits=Limits(seconds=CHANGE)
    )


def _rest(folder: Path, url: Path) -> Iterator[Figure]:
    """Processor time per second without work."""
    for name, command, text in (
        ("Home", [PUNCHLIST], "Done"),
        ("a conversation", [PUNCHLIST, "chat", "-s", "few"], "newest"),
    ):
        with Terminal(command, folder, environment(folder, url, "few")) as terminal:
            terminal.until(text)
            terminal.read(4)
            before = terminal.cpu_seconds()
            terminal.read(10)
            yield Figure(
                f"tui: processor time per second of {name} at rest",
                [(terminal.cpu_seconds() - before) / 10],
                limits=Limits(seconds=REST),
            )


def _memory(folder: Path, url: Path, pages: int) -> None:
    used = {}
    for session in ("few", "many"):
        with _chat(folder, url, session) as terminal:
            terminal.until("newest")
            for _ in range(pages):
                terminal.press("\x1b[5~")
                terminal.read(0.02)
            terminal.read(1)
            used[session] = terminal.memory()
    message = f"tui: {used['few'] / 1e6:.0f} MB with 1,000 messages, {used['many'] / 1e6:.0f} MB with 100,000"
    if used["many"] - used["few"] > MEMORY:
        raise AssertionError(message)
    print(message, file=sys.stderr)


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95) - 1]
