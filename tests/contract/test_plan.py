"""The turn plan through its service, on both databases."""

from __future__ import annotations

import pytest

from punchlist.conversations.model import TurnScope
from punchlist.plan import rules
from punchlist.plan.service import Plans


@pytest.mark.spec("T2")
def test_items_are_created_in_the_order_they_were_sent(plans: Plans, turn: TurnScope) -> None:
    plans.create(turn, rules.parse_items([{"title": "first"}, {"title": "second"}]))
    assert [todo.title for todo in plans.list(turn).items] == ["first", "second"]
