"""Signatures of questions and answers.

An answer counts for one question and one call, with its exact arguments, in one workspace, and only if the user gave
it. Write access to
the database is not enough to approve a call, or to let a question show another call than the one that runs.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from typing import Any

from punchlist.toolcalls.stored_call import StoredApproval, StoredCall

Sign = Callable[..., str]
"""From fields of text to a signature with the user's key."""


def sign_question(sign: Sign | None, approval: StoredApproval, call: StoredCall) -> str | None:
    return None if sign is None else sign("question", *_question(approval, call))


def is_genuine_question(sign: Sign | None, approval: StoredApproval, call: StoredCall) -> bool:
    """Whether the text that is shown was made for the call that will run."""
    return sign is None or _equal(approval.question_signature, sign("question", *_question(approval, call)))


def sign_answer(sign: Sign | None, approval: StoredApproval, call: StoredCall) -> str | None:
    return None if sign is None else sign("answer", *_answer(approval, call, call.workspace))


def is_genuine_answer(sign: Sign | None, approval: StoredApproval, call: StoredCall, workspace: str) -> bool:
    """Whether this user gave the answer, for this call in this workspace."""
    return sign is None or _equal(approval.answer_signature, sign("answer", *_answer(approval, call, workspace)))


def describe_call(call: StoredCall) -> str:
    """The call itself, for a question whose stored text cannot be relied on."""
    shown = json.dumps(json.loads(call.arguments), indent=2, ensure_ascii=False, sort_keys=True)
    return (
        f"{call.tool} in {call.workspace} with these arguments:\n{shown}\n"
        "(The stored text of this question was not signed by you, so it is not shown.)"
    )


def _question(approval: StoredApproval, call: StoredCall) -> tuple[str, ...]:
    shown = (approval.question, approval.why, approval.prefixes, approval.server or "")
    return (*_call(call, call.workspace), _canonical(call.request.arguments), *shown)


def _answer(approval: StoredApproval, call: StoredCall, workspace: str) -> tuple[str, ...]:
    # The arguments of a changed call are in its approval until the call itself has them.
    arguments = json.loads(approval.arguments) if approval.arguments else call.request.arguments
    given = (approval.question, approval.outcome or "", approval.answered_by or "", approval.reason)
    return (*_call(call, workspace), _canonical(arguments), *given)


def _call(call: StoredCall, workspace: str) -> tuple[str, ...]:
    return call.id, call.conversation_id, call.tool, workspace


def _canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True, default=repr)


def _equal(signature: str | None, expected: str) -> bool:
    return hmac.compare_digest((signature or "").encode(), expected.encode())
