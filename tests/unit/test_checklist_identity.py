"""Which item is which after a replacement (W3), and which one a person means."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.examples import examples

from punchlist.checklist.identity import assign_ids, dropped_items, item_changes
from punchlist.checklist.lifecycle import CHECKLIST, ChecklistAction, ChecklistStatus, action_between
from punchlist.checklist.model import ChecklistItem
from punchlist.checklist.validation import NewChecklistItem, find_item
from punchlist.errors import NotFound

statuses = st.sampled_from(ChecklistStatus)
contents = st.sampled_from("ABC")


def item(id: str, content: str = "A", status: ChecklistStatus = ChecklistStatus.PENDING) -> ChecklistItem:
    return ChecklistItem(id, content, f"Doing {content}", status)


def wanted(
    content: str = "A", id: str | None = None, status: ChecklistStatus = ChecklistStatus.PENDING
) -> NewChecklistItem:
    return NewChecklistItem(content, f"Doing {content}", status, id)


def ids(items: list[NewChecklistItem], before: list[ChecklistItem]) -> list[str]:
    fresh = (f"new{number}" for number in count(1))
    return [found.id for found in assign_ids(items, before, lambda: next(fresh))]


@pytest.mark.spec("W3")
def test_an_item_keeps_its_id_by_its_content() -> None:
    assert ids([wanted("B"), wanted("A")], [item("a", "A"), item("b", "B")]) == ["b", "a"]


@pytest.mark.spec("W3")
def test_an_item_keeps_its_id_by_naming_it_though_its_content_changed() -> None:
    assert ids([wanted("B", id="a")], [item("a", "A")]) == ["a"]


@pytest.mark.spec("W3")
def test_an_id_that_is_named_is_not_given_to_another_item_of_the_same_content() -> None:
    assert ids([wanted("A"), wanted("C", id="a")], [item("a", "A")]) == ["new1", "a"]


@pytest.mark.spec("W3")
def test_items_of_the_same_content_share_out_their_ids_in_order() -> None:
    before = [item("a1"), item("a2")]
    assert ids([wanted(), wanted(), wanted()], before) == ["a1", "a2", "new1"]
    assert ids([wanted(), wanted(id="a1")], before) == ["a2", "a1"]


@pytest.mark.spec("W3")
def test_a_new_item_never_gets_an_id_that_is_or_was_in_use() -> None:
    taken = iter(["a", "x", "fresh"])
    (_, made) = assign_ids([wanted("C", id="x"), wanted("B")], [item("a", "A")], lambda: next(taken))
    assert made.id == "fresh"


@pytest.mark.spec("W3")
@examples(300)
@given(
    st.lists(st.tuples(contents, statuses), max_size=6),
    st.lists(st.tuples(contents, st.sampled_from([None, "0", "1", "2", "x", "y"])), max_size=6, unique_by=lambda t: t),
)
def test_ids_are_unique_and_names_are_kept(
    before: list[tuple[str, ChecklistStatus]], after: list[tuple[str, str | None]]
) -> None:
    old = [item(str(number), content, status) for number, (content, status) in enumerate(before)]
    named: set[str] = set()
    new = []
    for content, id in after:
        new.append(wanted(content, None if id in named else id))
        named |= {id} if id else set()
    got = ids(new, old)
    assert len(set(got)) == len(got)
    assert all(want.id in (None, id) for want, id in zip(new, got, strict=True))
    for want, id in zip(new, got, strict=True):
        if want.id is None and not id.startswith("new"):
            assert [was.content for was in old if was.id == id] == [want.content]


@pytest.mark.spec("W3")
def test_only_unfinished_items_that_are_left_out_count_as_dropped() -> None:
    before = [
        item("a"),
        item("b", "B", ChecklistStatus.IN_PROGRESS),
        item("c", "C", ChecklistStatus.COMPLETED),
        item("d", "D"),
    ]
    assert [gone.id for gone in dropped_items(before, [item("d", "D")])] == ["a", "b"]


@pytest.mark.parametrize(("reference", "id"), [("1", "a"), ("3", "c"), ("b", "b"), ("02", "b")])
def test_a_person_names_an_item_by_number_or_id(reference: str, id: str) -> None:
    assert find_item([item("a"), item("b"), item("c")], reference).id == id


@pytest.mark.parametrize("reference", ["0", "4", "-1", "A", "", "1.0", "\x1b[2J", "9" * 5_000, "0" * 8 + "14", "¹"])
def test_a_reference_to_nothing_says_which_numbers_there_are(reference: str) -> None:
    with pytest.raises(NotFound, match=r"Numbers: 1 to 3\.$") as refused:
        find_item([item("a"), item("b"), item("c")], reference)
    assert str(refused.value).isprintable()


def test_in_an_empty_list_there_is_nothing_to_name() -> None:
    with pytest.raises(NotFound, match="the list is empty"):
        find_item([], "1")


@pytest.mark.parametrize("before", ChecklistStatus)
@pytest.mark.parametrize("after", ChecklistStatus)
def test_every_two_states_are_connected_by_one_step(before: ChecklistStatus, after: ChecklistStatus) -> None:
    if before is after:
        return
    action = action_between(before, after)
    assert CHECKLIST.table[before, action] is after


@pytest.mark.spec("X5")
def test_the_steps_of_a_replacement_say_what_happened_to_each_item() -> None:
    before = [item("a"), item("b", "B"), item("c", "C", ChecklistStatus.COMPLETED), item("d", "D")]
    after = [item("c", "C", ChecklistStatus.PENDING), item("e", "E"), item("a"), item("b", "B, but better")]
    assert [(step.id, step.action, step.from_status, step.to_status) for step in item_changes(before, after)] == [
        ("c", ChecklistAction.REOPEN, ChecklistStatus.COMPLETED, ChecklistStatus.PENDING),
        ("e", ChecklistAction.ADD, None, ChecklistStatus.PENDING),
        ("b", "edit", ChecklistStatus.PENDING, ChecklistStatus.PENDING),
        ("d", "remove", ChecklistStatus.PENDING, None),
    ]


@pytest.mark.spec("X5")
@examples(200)
@given(*[st.dictionaries(st.sampled_from("abcd"), st.tuples(st.sampled_from(["", "!"]), statuses), max_size=4)] * 2)
def test_steps_lead_from_the_list_before_to_the_list_after(
    before: dict[str, tuple[str, ChecklistStatus]], after: dict[str, tuple[str, ChecklistStatus]]
) -> None:
    old = [item(id, id + mark, status) for id, (mark, status) in before.items()]
    new = [item(id, id + mark, status) for id, (mark, status) in after.items()]
    states = {was.id: was.status for was in old}
    for step in item_changes(old, new):
        assert states.get(step.id) == step.from_status
        if step.to_status is None:
            del states[step.id]
        else:
            states[step.id] = step.to_status
    assert states == {now.id: now.status for now in new}
