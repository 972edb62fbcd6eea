"""Everything that needs a person: approvals, questions of agents, escalations and failed cycles of missions.

Numbers count every request that was ever made, oldest first. Requests are never deleted, so a number that a person
read in the list cannot mean another request when it is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.clock import timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions.planning.retries import retry_at
from punchlist.views import repository

if TYPE_CHECKING:
    from punchlist.app import Services

RequestKind = Literal["approval", "question", "escalation", "failure"]
ANSWERS: Final[dict[RequestKind, tuple[str, ...]]] = {
    "approval": ("approve", "deny", "modify"),
    "question": ("answer",),
    "escalation": ("answer extend DATE", "answer cancel", "answer keep", "acknowledge"),
    "failure": ("retry",),
}


@dataclass(frozen=True, slots=True)
class InboxItem:
    number: int
    kind: RequestKind
    id: str
    subject: str
    """The tool of an approval, the kind of an escalation or failed run, the todo's title otherwise."""
    question: str
    asked_at: str
    session: str | None = None
    mission: str | None = None
    todo_id: str | None = None
    reason: str | None = None
    expires_at: str | None = None
    run_id: str | None = None
    requester: str | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        return ANSWERS[self.kind]


class Inbox:
    def __init__(self, services: Services) -> None:
        self._services = services

    def list(self) -> list[InboxItem]:
        """The open requests of all sessions and missions, oldest first."""
        with self._services.store.read() as tx:
            sessions = repository.sessions_with_conditions(tx)
            failed = repository.failed_planning(tx)
            numbers = {id: number for number, id in enumerate(repository.request_ids(tx), start=1)}
        items = [
            *self._approvals(numbers),
            *self._questions(numbers, sessions),
            *self._escalations(numbers),
            *(_failure(numbers, *row) for row in failed),
        ]
        return sorted(items, key=lambda item: item.number)

    def find(self, reference: str) -> InboxItem:
        """The open request with this number, or with an id that ends like this."""
        items = self.list()
        if reference.isdecimal() and len(reference) < 10:
            found = [item for item in items if item.number == int(reference)]
        else:
            found = [item for item in items if reference and item.id.endswith(reference)]
        if len(found) > 1:
            raise InvalidInput(f"{len(found)} requests have an id that ends in {excerpt(reference)!r}. Use the number.")
        if not found:
            raise NotFound(f"The inbox has no request {excerpt(reference)!r}. `punchlist inbox` lists the open ones.")
        return found[0]

    def _approvals(self, numbers: dict[str, int]) -> Iterator[InboxItem]:
        approvals = self._services.approvals
        for approval in approvals.waiting():
            yield InboxItem(
                numbers.get(approval.call_id, 0),
                "approval",
                approval.call_id,
                approvals.call(approval.call_id).tool,
                approval.question,
                approval.asked_at,
                session=approval.conversation_id,
                reason=approval.why,
                expires_at=approval.expires_at,
            )

    def _questions(self, numbers: dict[str, int], sessions: Iterable[str]) -> Iterator[InboxItem]:
        for session in sessions:
            for blocked in self._services.plans.open_conditions(session):
                condition = blocked.condition
                if condition.kind == "person":
                    yield InboxItem(
                        numbers.get(condition.id, 0),
                        "question",
                        condition.id,
                        blocked.todo.title,
                        condition.subject,
                        condition.created_at,
                        session=session,
                        todo_id=blocked.todo.id,
                    )

    def _escalations(self, numbers: dict[str, int]) -> Iterator[InboxItem]:
        asked = self._services.escalations.list()
        slugs = {mission.id: mission.slug for mission in self._services.missions.list()} if asked else {}
        for escalation in asked:
            yield InboxItem(
                numbers.get(escalation.id, 0),
                "escalation",
                escalation.id,
                escalation.kind,
                escalation.question,
                escalation.asked_at,
                mission=slugs.get(escalation.mission_id),
                todo_id=escalation.todo_id,
            )


def _failure(
    numbers: dict[str, int], id: str, kind: str, mission: str, why: str, ended_at: str, retries: int, requester: str
) -> InboxItem:
    at = retry_at(ended_at, retries)
    reason = f"is retried at {timestamp(at)}" if at is not None else f"was retried {retries} times"
    return InboxItem(
        numbers.get(id, 0),
        "failure",
        id,
        kind,
        why,
        ended_at,
        mission=mission,
        reason=reason,
        run_id=id,
        requester=requester,
    )
