""" "Always" rules in the database: each belongs to one project, and holds for one run, one session, or permanently.

A rule is signed with the user's key, together with its session and project, so that a database from another user
carries no permissions. Revoking keeps the row and removes the signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from punchlist.conversations import repository as conversation_repository
from punchlist.errors import NotFound
from punchlist.kernel.events import Actor, Change
from punchlist.kernel.ids import new_id
from punchlist.kernel.processes import current_process, is_running
from punchlist.storage import event_log
from punchlist.storage.store import Store, Transaction
from punchlist.toolcalls import repository
from punchlist.toolcalls.policy import Rule, RuleLifetime
from punchlist.toolcalls.stored_call import call_stream, event_reason, rule_from_json, rule_to_json

RULE_ADDED: Final = "always"
"""The action of the event that records a new rule."""
RULE_REVOKED: Final = "revoke"
_TURN: Final = "turn:"
_REVOKED: Final = "revoked"
"""In place of the signature of a revoked rule."""


class StoredRule(NamedTuple):
    id: str
    conversation_id: str
    rule: str
    seal: str
    said_by: str
    created_at: str


class AlwaysRules:
    """The rules that apply in one session of one project."""

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        project: str,
        seal: Callable[[str], str] | None = None,
        turn_id: str | None = None,
    ) -> None:
        """Without `seal`, every stored rule of the project counts. A rule for one run ends with the turn, since a
        worker's process lasts for months; without a turn, with the process."""
        self._store = store
        self._conversation_id = conversation_id
        self._project = project
        self._seal = seal
        self._run = f"{_TURN}{turn_id}" if turn_id else current_process()

    def effective(self) -> list[Rule]:
        """The rules that apply to calls of this process."""
        return [rule for rule in self.listed() if rule.owner in (None, self._run)]

    def listed(self) -> list[Rule]:
        """The rules that apply in this session, with those of other runs that go on."""
        with self._store.read() as tx:
            stored = [StoredRule._make(row) for row in repository.all_rules(tx)]
            return [rule for row in stored if (rule := self._read(tx, row)) is not None]

    def _read(self, tx: Transaction, row: StoredRule) -> Rule | None:
        signed = self._seal is None or row.seal == self._seal_of(row.conversation_id, row.rule)
        if row.seal == _REVOKED or not signed:
            return None
        rule = replace(rule_from_json(row.rule), id=row.id)
        if rule.project != self._project:
            return None
        if row.conversation_id != self._conversation_id and rule.lifetime is not RuleLifetime.PERMANENT:
            return None
        if rule.owner is not None and not _goes_on(tx, rule.owner):
            return None
        return rule

    def _seal_of(self, conversation_id: str, rule: str) -> str:
        return "" if self._seal is None else self._seal(f"{conversation_id}\n{rule}")

    def bound(self, rule: Rule) -> Rule:
        """A new rule with its project, and its run if it is for this one only."""
        owner = self._run if rule.lifetime is RuleLifetime.RUN else None
        return replace(rule, project=self._project, owner=owner)

    def add(self, tx: Transaction, rule: Rule, actor: Actor) -> Change:
        """Store a rule; returns the event, which the caller appends."""
        written = rule_to_json(self.bound(rule))
        seal = self._seal_of(self._conversation_id, written)
        row = StoredRule(new_id(), self._conversation_id, written, seal, str(actor), tx.now())
        repository.insert_rule(tx, row._asdict())
        return _change(row, RULE_ADDED, rule, actor)

    def revoke(self, rule: Rule, actor: Actor) -> None:
        """End a rule, for running processes from the next reply of their model on."""
        with self._store.write() as tx:
            row = next((StoredRule._make(row) for row in repository.all_rules(tx) if row[0] == rule.id), None)
            if row is None or row.seal == _REVOKED:
                raise NotFound(f"Rule {rule.id} is revoked already.")
            conversation_repository.lock_conversation(tx, row.conversation_id)
            repository.update_seal(tx, row.id, _REVOKED)
            event_log.append(tx, _change(row, RULE_REVOKED, rule, actor))


def _goes_on(tx: Transaction, run: str) -> bool:
    """Whether a turn is open, or a process may be running."""
    if not run.startswith(_TURN):
        return is_running(run) is not False
    turn = conversation_repository.find_turn(tx, run.removeprefix(_TURN))
    return turn is not None and turn.open


def _change(row: StoredRule, action: str, rule: Rule, actor: Actor) -> Change:
    return Change(
        stream=call_stream(row.conversation_id),
        conversation_id=row.conversation_id,
        actor=str(actor),
        action=action,
        subject=rule.tool,
        from_status=None,
        to_status=None,
        reason=event_reason(str(rule)),
        data={"rule": row.rule},
    )
