"""A process of its own that takes what is queued in session `s`, one turn after the other.

It prints `ready`, waits for a line, and prints the contents that it was given, as JSON.
"""

from __future__ import annotations

import json
import sys

from punchlist.conversations.message_queue import MessageQueue
from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.kernel.events import Actor, Role
from punchlist.storage.open import open_store


def main(database: str) -> None:
    store = open_store(database)
    conversations, queue = Conversations(store), MessageQueue(store)
    scope = Scope("s", Actor(Role.SUPERVISOR, "deliverer"))
    print("ready", flush=True)
    sys.stdin.readline()
    taken = []
    while queue.pending("s"):
        if delivered := queue.deliver(scope):
            taken.append(delivered.queued.content)
            conversations.end_turn(scope, reason="done with it")
    print(json.dumps(taken), flush=True)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1])
