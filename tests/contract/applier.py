"""A process of its own that applies mission files; the tests let several go at the same moment.

It prints `ready`, waits for a line, applies each of the files it was given as JSON, and prints what came of each:
`made`, `changed`, `same`, or the error's code.
"""

from __future__ import annotations

import json
import sys

from punchlist.conversations.model import Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import PunchlistError
from punchlist.kernel.events import Actor, Role
from punchlist.missions.config import file
from punchlist.missions.service import Missions
from punchlist.storage.open import open_store
from punchlist.storage.store import Store


def apply(store: Store, source: str) -> str:
    missions = Missions(store, Conversations(store))
    try:
        applied = missions.apply(Scope("s", Actor(Role.PERSON, "applier")), file.parse_mission(source), source)
    except PunchlistError as error:
        return error.code
    return "made" if applied.created else "changed" if applied.changes else "same"


def main(database: str, sources: list[str]) -> None:
    store = open_store(database)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([apply(store, source) for source in sources]), flush=True)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
