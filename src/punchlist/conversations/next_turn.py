"""Mode and model that a person chose for the next turns of a session, for its other windows and its process (C15).

They are part of the conversation's metadata. They are signed with the user's key, since a mode is a permission: a
choice that another program wrote does not count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from punchlist.conversations import repository
from punchlist.conversations.model import Scope
from punchlist.conversations.service import conversation_change
from punchlist.kernel.events import canonical_json
from punchlist.storage import event_log
from punchlist.storage.store import Store
from punchlist.trust import Trust

CHOOSE: Final = "choose"
"""The action of the event."""
_KEY: Final = "nextTurn"


class NextTurn(NamedTuple):
    mode: str
    model: str
    """Empty for the agent's own."""
    at: str = ""
    """When it was chosen."""


@dataclass(frozen=True, slots=True)
class NextTurns:
    _store: Store
    _trust: Trust

    def get(self, session: str) -> NextTurn | None:
        """The last choice; None if there is none, or if this user has not signed it."""
        with self._store.read() as tx:
            found = repository.find_conversation(tx, session)
        stored: dict[str, Any] = json.loads(found.metadata).get(_KEY) or {} if found else {}
        fields = [str(stored.get(name, "")) for name in NextTurn._fields]
        signed = bool(stored) and self._trust.is_signature(str(stored.get("signature", "")), _KEY, session, *fields)
        return NextTurn(*fields) if signed else None

    def choose(self, scope: Scope, mode: str, model: str) -> str:
        """When it was chosen. Nothing is stored before the first turn of a session: it is begun with the choice."""
        session = scope.conversation_id
        with self._store.write() as tx:
            before = repository.lock_conversation(tx, session)
            if before is None:
                return ""
            chosen = NextTurn(mode, model, tx.now())
            stored = {**chosen._asdict(), "signature": self._trust.sign(_KEY, session, *chosen)}
            metadata = canonical_json({**json.loads(before.metadata), _KEY: stored})
            tx.run(repository.SET_METADATA, id=session, metadata=metadata)
            event_log.append(tx, conversation_change(scope, CHOOSE, session, "next turn", {"metadata": metadata}))
            return chosen.at
