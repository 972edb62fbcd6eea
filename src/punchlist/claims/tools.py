"""Tools for several agents that work on one list: claim_todo, renew_claim, release_claim.

The surface decides which lists its caller can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from punchlist.claims import validation as claim_validation
from punchlist.claims.lifecycle import CLAIMANTS, DEFAULT_LEASE_SECONDS, MAX_LEASE_SECONDS, MIN_LEASE_SECONDS
from punchlist.claims.model import Claim, ClaimGranted, ListKind, NothingToClaim
from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput, NotAllowed, NotFound
from punchlist.kernel import text
from punchlist.kernel.tool import Arguments, ListToolSpec, Schema, ToolResult, json_result, schema

MAX_NAME_LENGTH: Final = 100

_STRING: Final[Schema] = {"type": "string"}
_ID: Final[Schema] = {"type": ["string", "integer"]}
_FENCE: Final[Schema] = {"type": "integer"}
_SECONDS: Final[Schema] = {"type": "integer", "minimum": MIN_LEASE_SECONDS, "maximum": MAX_LEASE_SECONDS}

T = TypeVar("T")


class ClaimableList(NamedTuple):
    """A list as seen by one caller: functions of its service, bound to that caller."""

    claim: Callable[[str | None, int, str | None], ClaimGranted[Any] | NothingToClaim]
    """Claim a todo, without an id the next free one. The last argument is the slug of a mission."""
    renew: Callable[[str, int, int], Claim]
    release: Callable[[str, int], Claim]
    todo_json: Callable[[Any], dict[str, Any]]


ClaimableLists = Callable[[Scope], Mapping[ListKind, ClaimableList]]
"""The lists of a caller; the first is the default."""


def claim_tools(lists: ClaimableLists) -> list[ListToolSpec[Scope]]:
    return [_claim_todo(lists), _renew_claim(lists), _release_claim(lists)]


def _claim_todo(lists: ClaimableLists) -> ListToolSpec[Scope]:
    def run(scope: Scope, args: Arguments) -> ToolResult:
        mission = _name(args, "missionSlug")
        kind = claim_validation.parse_list(args.get("list")) or (ListKind.MISSION if mission else None)
        chosen = _chosen(lists(scope), kind)
        claimed = chosen.claim(_name(args, "todoId"), claim_validation.parse_seconds(args.get("seconds")), mission)
        if isinstance(claimed, NothingToClaim):
            return json_result({"todo": None, "next": str(claimed)})
        return json_result({"todo": chosen.todo_json(claimed.todo), **claim_json(claimed.claim)})

    return ListToolSpec(
        name="claim_todo",
        title="Claim a todo",
        description=(
            "When several agents work on one list: claim a todo for a number of seconds (default "
            f"{DEFAULT_LEASE_SECONDS}); without todoId, the next free one. Keep the fence for renew_claim, "
            "release_claim and complete_todo."
        ),
        input_schema=schema(
            todoId=_ID,
            list={"type": "string", "enum": [kind.value for kind in ListKind]},
            missionSlug=_STRING,
            seconds=_SECONDS,
        ),
        output_schema=schema(
            ["todo"], todo={"type": ["object", "null"]}, fence=_FENCE, claimedUntil=_STRING, next=_STRING
        ),
        roles=CLAIMANTS,
        read_only=False,
        run=run,
    )


def _renew_claim(lists: ClaimableLists) -> ListToolSpec[Scope]:
    def run(scope: Scope, args: Arguments) -> ToolResult:
        todo_id, fence = _id(args), claim_validation.parse_fence(args.get("fence"))
        seconds = claim_validation.parse_seconds(args.get("seconds"))
        claim = _first(lists(scope), lambda each: each.renew(todo_id, fence, seconds))
        return json_result({"id": claim.todo_id, **claim_json(claim)})

    return ListToolSpec(
        name="renew_claim",
        title="Renew a claim",
        description="Extend your claim by a number of seconds from now.",
        input_schema=schema(["todoId", "fence"], todoId=_ID, fence=_FENCE, seconds=_SECONDS),
        output_schema=schema(["id", "fence", "claimedUntil"], id=_STRING, fence=_FENCE, claimedUntil=_STRING),
        roles=CLAIMANTS,
        read_only=False,
        run=run,
    )


def _release_claim(lists: ClaimableLists) -> ListToolSpec[Scope]:
    def run(scope: Scope, args: Arguments) -> ToolResult:
        todo_id, fence = _id(args), claim_validation.parse_fence(args.get("fence"))
        claim = _first(lists(scope), lambda each: each.release(todo_id, fence))
        return json_result({"id": claim.todo_id, "released": True})

    return ListToolSpec(
        name="release_claim",
        title="Release a todo",
        description="Return a claimed todo to the list, unfinished.",
        input_schema=schema(["todoId", "fence"], todoId=_ID, fence=_FENCE),
        output_schema=schema(["id", "released"], id=_STRING, released={"type": "boolean"}),
        roles=CLAIMANTS,
        read_only=False,
        run=run,
    )


def claim_json(claim: Claim) -> dict[str, Any]:
    return {"fence": claim.fence, "claimedUntil": claim.lease_until}


def _chosen(lists: Mapping[ListKind, ClaimableList], kind: ListKind | None) -> ClaimableList:
    if kind is None:
        kind = next(iter(lists), None)
    if kind is None or kind not in lists:
        available = " or ".join(lists) or "none"
        raise NotAllowed(f"list: you cannot claim from {kind or 'any list'}; available: {available}.")
    return lists[kind]


def _first(lists: Mapping[ListKind, ClaimableList], act: Callable[[ClaimableList], T]) -> T:
    """Call `act` on each list until one knows the todo."""
    missing = NotFound("You have no list with claimable todos.")
    for each in lists.values():
        try:
            return act(each)
        except NotFound as error:
            missing = error
    raise missing


def _id(args: Arguments) -> str:
    found = _name(args, "todoId")
    if found is None:
        raise InvalidInput("todoId: is required")
    return found


def _name(args: Arguments, key: str) -> str | None:
    raw = args.get(key)
    if raw is None:
        return None
    if isinstance(raw, int) and not isinstance(raw, bool):
        # The number of a plan todo.
        raw = str(raw)
    if problem := text.line_problem(raw, max_length=MAX_NAME_LENGTH):
        raise InvalidInput(f"{key}: {problem}")
    return str(raw).strip()
