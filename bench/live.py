"""How long text takes from the process that streams it to a subscriber in another process: the 95th percentile."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from bench.figures import Bench, Figure, Limits
from bench.postgres import server
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store
from punchlist.views.live_hub import LiveHub
from punchlist.views.live_text import LiveText

LIMIT: Final = 0.1
SCOPE: Final = Scope("bench", Actor(Role.SUPERVISOR, "bench"))
# Times are those of this machine, which both processes share. The pauses are not a multiple of any interval.
WRITER: Final = """
import sys, time
from punchlist.agent.events import TextDelta
from punchlist.agent.live_output import LiveOutput
from punchlist.conversations.model import MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store
url, turn, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = open_store(url)
output, conversations = LiveOutput(store), Conversations(store)
listen, scope = output.listener("bench"), Scope("bench", Actor(Role.SUPERVISOR, "bench"))
for number in range(rounds):
    time.sleep(0.067 + number % 7 / 1000)
    listen(TextDelta("bench", turn, f" {time.time_ns()}"))
    conversations.add_message(scope, MessageRole.USER, f"{time.time_ns()}")
output.close()
"""


def measure(bench: Bench) -> Iterator[Figure]:
    rounds = 40 if bench.sizes.rounds < 1_000 else 200
    yield from _figures("SQLite", str(bench.folder / "live.db"), rounds)
    with server(bench.folder / "postgres") as url:
        yield from _figures("PostgreSQL", url, rounds)


def _figures(name: str, url: str, rounds: int) -> Iterator[Figure]:
    texts, events = _delays(url, rounds)
    yield Figure(f"{name}: streamed text in another process, p95", [_p95(texts)], limits=Limits(seconds=LIMIT))
    yield Figure(f"{name}: event in another process, p95", [_p95(events)], limits=Limits(seconds=LIMIT))


def _delays(url: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds from the writer's clock to the subscriber's, of streamed text and of events."""
    texts: list[float] = []
    events: list[float] = []
    with closing(open_store(url)) as store, closing(LiveHub(store)) as hub, hub.subscribe() as subscription:
        conversations = Conversations(store)
        turn = conversations.open_turn(SCOPE)
        with subprocess.Popen([sys.executable, "-c", WRITER, url, turn.id, str(rounds)]) as writer:
            while len(events) < rounds or writer.poll() is None:
                items = subscription.read(timeout=1.0)
                now = time.time_ns()
                for item in items:
                    if isinstance(item, LiveText):
                        texts += [(now - int(sent)) / 1e9 for sent in item.text.split()]
                    elif item.action == "say":
                        sent = conversations.messages(SCOPE.conversation_id)[len(events)].content
                        events.append((now - int(sent)) / 1e9)
        assert writer.returncode == 0
    return texts, events


def _p95(delays: list[float]) -> float:
    return sorted(delays)[int(len(delays) * 0.95) - 1]
