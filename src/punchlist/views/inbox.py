"""Everything that needs a person, in one list: approvals, questions of agents, waits, escalations and failed cycles of
missions, reached budgets, and missions without a worker.

A request gets its number when it is listed for the first time. Numbers are never reused, so a number that a person read
in the list cannot mean another request when it is answered.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput, NotFound, StoreError
from punchlist.kernel.clock import timestamp
from punchlist.kernel.text import excerpt
from punchlist.missions.escalations.transitions import question_text
from punchlist.missions.planning.retries import is_retried, retry_at
from punchlist.runs.model import RunKind
from punchlist.runs.workers import alive_since
from punchlist.storage.statements import SelectAll
from punchlist.storage.store import Transaction
from punchlist.toolcalls.always import always_coverage
from punchlist.toolcalls.policy import RuleLifetime
from punchlist.views import inbox_repository
from punchlist.views.inbox_answers import AnsweredRequest, InboxAnswer, carry_out, check_answer, parse_action
from punchlist.views.inbox_model import InboxItem, InboxPage, RequestKind
from punchlist.views.inbox_repository import ApprovalRow, OpenRequest, RequestDetails, RequestRow

if TYPE_CHECKING:
    from punchlist.app import Services

T = TypeVar("T")
DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 500
WORKER_GRACE: Final = timedelta(minutes=5)
"""How long a mission may be without a worker before a person is told."""
TIME_GRACE: Final = timedelta(minutes=5)
"""How long after its time a wait needs a person."""
_LAST: Final = 2**62


class Inbox:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._store = services.store

    def list(self) -> Sequence[InboxItem]:
        """The open requests of all sessions and missions, oldest first."""
        return self.page(limit=None).items

    def page(self, *, limit: int | None = DEFAULT_LIMIT, cursor: str | None = None) -> InboxPage:
        after = _parse_cursor(cursor) if cursor is not None else 0
        most = _LAST if limit is None else max(1, min(limit, MAX_LIMIT))
        following = self._requests(after, most + 1)
        shown = following[:most]
        cursor_after = _cursor_after(shown[-1]) if len(following) > len(shown) else None
        return InboxPage(self._read(shown), self.counts(), self._store.clock(), cursor_after)

    def about_todo(self, todo_id: str) -> Sequence[InboxItem]:
        """The open requests that a mission todo and the work on it wait for, oldest first."""
        return self._selected(inbox_repository.about_todo, todo_id=todo_id)

    def from_chat(self, conversation_id: str) -> Sequence[InboxItem]:
        """The open requests of the agents in a chat or session, oldest first."""
        return self._selected(inbox_repository.from_chat, conversation_id=conversation_id)

    def counts(self) -> Mapping[RequestKind, int]:
        """Open requests by kind, without their details."""
        with self._store.read() as tx:
            found = inbox_repository.count_open(tx, **_limits(self._store.clock()))
        return {RequestKind(kind): count for kind, count in found}

    def find(self, reference: str) -> InboxItem:
        """The open request with this number, or with an id that ends like this."""
        if reference.isdecimal() and len(reference) < 10:
            found: Sequence[OpenRequest] = [
                each for each in self._requests(int(reference) - 1, 1) if each.number == int(reference)
            ]
        else:
            found = self._with_id(reference) if reference else []
        if len(found) > 1:
            raise InvalidInput(
                f"{len(found)} or more requests have an id that ends in {excerpt(reference)!r}. Use the number."
            )
        # A request can be answered between the two reads.
        items = self._read(found)
        if not items:
            raise NotFound(f"{self._why_not_open(reference)} `punchlist inbox` lists the open ones.")
        return items[0]

    def _why_not_open(self, reference: str) -> str:
        with self._store.read() as tx:
            is_number = reference.isdecimal() and len(reference) < 10
            id = inbox_repository.id_of_number(tx, number=int(reference)) if is_number else reference
        if id is None:
            return f"The inbox has no request {excerpt(reference)!r}."
        closed = self._services.approvals.why_closed(id)
        if closed is None and not is_number:
            return f"The inbox has no request {excerpt(reference)!r}."
        return f"Request {excerpt(reference)!r} is closed. {closed or 'It needs no answer any more.'}"

    def answer(
        self,
        scope: Scope,
        reference: str,
        action: str,
        *,
        text: str = "",
        reason: str = "",
        deadline: str | None = None,
        always: str | None = None,
        lifetime: RuleLifetime = RuleLifetime.SESSION,
        arguments: Mapping[str, Any] | None = None,
    ) -> AnsweredRequest:
        """Answer the request with this number or id. `InboxItem.answers` names its actions, `InboxAnswer` the fields.

        If the process that asked for an approval has ended, the answer is stored and counts when the turn continues.
        """
        item = self.find(reference)
        answer = InboxAnswer(parse_action(action), text, reason, deadline, always, lifetime, arguments)
        check_answer(scope, item, answer)
        return carry_out(self._services, scope, item, answer)

    def _with_id(self, ending: str) -> Sequence[OpenRequest]:
        """The open requests with an id that ends like this; at most two."""
        self._requests(0, 1)
        escaped = ending.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        with self._store.read() as tx:
            return inbox_repository.open_ids(tx, pattern=f"%{escaped}", most=2, **_limits(self._store.clock()))

    def _selected(self, select: SelectAll[OpenRequest], **values: str) -> Sequence[InboxItem]:
        self._services.approvals.expire_overdue()
        with self._store.read() as tx:
            found = select(tx, **values, most=MAX_LIMIT, **_limits(self._store.clock()))
        if any(each.number is None for each in found):
            self._requests(0, 1)
            with self._store.read() as tx:
                found = select(tx, **values, most=MAX_LIMIT, **_limits(self._store.clock()))
        # One by one: requests between these numbers are not read.
        return [item for each in found for item in self._read([each])]

    def _requests(self, after: int, most: int) -> Sequence[OpenRequest]:
        """The open requests after a number, by number; those that have none get one."""
        self._services.approvals.expire_overdue()
        limits = _limits(self._store.clock())
        with self._store.read() as tx:
            requests = inbox_repository.open_requests(tx, after=after, most=most, **limits)
        if not requests or requests[0].number is not None:
            return requests
        try:
            with self._store.write() as tx:
                new = inbox_repository.open_requests(tx, after=_LAST, most=_LAST, **limits)
                inbox_repository.assign_numbers(tx, [each.id for each in new])
                return inbox_repository.open_requests(tx, after=after, most=most, **limits)
        except StoreError:
            # A database that cannot be written is still read. Its requests cannot be answered either.
            with self._store.read() as tx:
                found = inbox_repository.open_requests(tx, after=0, most=_LAST, **limits)
            first = max((each.number or 0 for each in found), default=0) + 1
            # Those without a number come first.
            numbered = [each._replace(number=each.number or first + place) for place, each in enumerate(found)]
            in_order = sorted(numbered, key=lambda each: each.number or 0)
            return [each for each in in_order if (each.number or 0) > after][:most]

    def _read(self, requests: Sequence[OpenRequest]) -> Sequence[InboxItem]:
        if not requests:
            return []
        numbers = {request.id: request.number or 0 for request in requests}
        span = {"first": min(numbers.values()), "last": max(numbers.values())}
        with self._store.read() as tx:
            items = [item for item in self._items(tx, span, numbered=True) if item.id in numbers]
            if len(items) < len(numbers):
                # Answered since, or in a database that cannot be written.
                items = [item for item in self._items(tx, span, numbered=False) if item.id in numbers]
        return sorted((replace(item, number=numbers[item.id]) for item in items), key=lambda item: item.number)

    def _items(self, tx: Transaction, span: dict[str, int], *, numbered: bool) -> Iterator[InboxItem]:
        limits = _limits(self._store.clock())
        overdue = {"overdue": limits["overdue"]}
        workers = {name: limits[name] for name in ("alone_since", "alive_since")}

        def rows(details: RequestDetails[T], **more: Any) -> Sequence[T]:
            return (details.numbered if numbered else details.all)(tx, **span, **more)

        yield from (self._approval(row) for row in rows(inbox_repository.approvals))
        yield from (_condition(*row) for row in rows(inbox_repository.conditions, **overdue))
        yield from (_escalation(*row) for row in rows(inbox_repository.escalations))
        yield from (_failure(*row) for row in rows(inbox_repository.failures))
        yield from (_item(RequestKind.BUDGET, row) for row in rows(inbox_repository.budgets))
        yield from (_without_worker(row) for row in rows(inbox_repository.missions_without_worker, **workers))

    def _approval(self, row: ApprovalRow) -> InboxItem:
        request, call, stored = row
        approval = self._services.approvals.verified(stored, call)
        return _item(
            RequestKind.APPROVAL,
            request._replace(question=approval.question),
            reason=approval.why,
            expires_at=approval.expires_at,
            always=always_coverage(approval.as_question, call.tool),
        )


def _limits(now: datetime) -> dict[str, str]:
    return {
        "overdue": timestamp(now - TIME_GRACE),
        "alone_since": timestamp(now - WORKER_GRACE),
        "alive_since": alive_since(now),
    }


def _item(kind: RequestKind, row: RequestRow, **more: Any) -> InboxItem:
    return InboxItem(kind=kind, **{**row._asdict(), "number": row.number or 0}, **more)


_CONDITIONS: Final = {
    "event": (RequestKind.EVENT, "waits for this event; the answer reports that it happened"),
    "time": (RequestKind.TIME, "the time has passed; `punchlist run --resume` continues the work"),
}


def _condition(kind: str, plan_todo_id: str, row: RequestRow) -> InboxItem:
    request, reason = _CONDITIONS.get(kind, (RequestKind.QUESTION, None))
    return _item(request, row, plan_todo_id=plan_todo_id, reason=reason)


def _escalation(row: RequestRow, status: str) -> InboxItem:
    row = row._replace(question=question_text(row.question))
    return _item(RequestKind.ESCALATION, row, reason="acknowledged" if status == "acknowledged" else None)


def _failure(row: RequestRow, retries: int) -> InboxItem:
    at = retry_at(row.asked_at, retries) if is_retried(RunKind(row.subject), row.question, retries) else None
    tried = f"was retried {retries} times" if retries else "is not retried"
    reason = f"is retried at {timestamp(at)}" if at is not None else tried
    return _item(RequestKind.FAILURE, row, reason=reason)


def _without_worker(row: RequestRow) -> InboxItem:
    at = row.asked_at[:16].replace("T", " ")
    question = f"No worker has run since {at} UTC. Start one with `punchlist worker`."
    return _item(RequestKind.WORKER, row._replace(question=question))


def _cursor_after(request: OpenRequest) -> str:
    return base64.urlsafe_b64encode(str(request.number).encode()).decode().rstrip("=")


def _parse_cursor(cursor: str) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        if len(text) < 20 and text.isdecimal():
            return int(text)
    except (ValueError, binascii.Error):
        pass
    raise InvalidInput("cursor: must be a nextCursor, unchanged; leave it out to start from the beginning")
