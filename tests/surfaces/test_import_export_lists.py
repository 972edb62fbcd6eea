"""Imports into our lists, and our lists as exports, on both databases (X6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import DEFAULT, Mock

import pytest
from tests.conftest import StoppedClock
from tests.contract.missions import BUILD, ONBOARDING, SLUG, Team, developer_experience

from punchlist.checklist.service import Checklists
from punchlist.conversations.model import Scope, TurnScope
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotFound
from punchlist.import_export import plan_target, sources
from punchlist.import_export.format_limits import fit_items
from punchlist.import_export.formats import FORMATS
from punchlist.import_export.item import ExchangeItem, ParsedFile
from punchlist.import_export.mission_target import MissionTarget
from punchlist.import_export.plan_target import PlanTarget
from punchlist.import_export.targets import ChecklistTarget, ImportedItem, ImportPlan, ImportTarget, plan_import
from punchlist.kernel.events import Actor, Role
from punchlist.missions.model import MissionScope
from punchlist.missions.todos.lifecycle import TodoAction, TodoPriority, TodoStatus
from punchlist.plan import validation as plan_validation
from punchlist.plan.lifecycle import PlanAction
from punchlist.plan.service import Plans, end_todo
from punchlist.storage.store import Store

PERSON = Actor(Role.PERSON, "test")
HERE, THERE = Scope("here", PERSON), Scope("there", PERSON)


def carry_out(entries: list[ExchangeItem], format: str, target: ImportTarget) -> tuple[ImportPlan, list[ImportedItem]]:
    decided = plan_import(ParsedFile(entries, []), FORMATS[format], target)
    return decided, decided.execute(target)[0]


def through(format: str, entries: list[ExchangeItem]) -> list[ExchangeItem]:
    """Written and read again."""
    one = FORMATS[format]
    fitted = fit_items(one.limits, entries, "2026-02-21T09:00:00.000000Z").items
    if one.write is not None:
        return one.read(one.write(fitted)).items
    assert one.write_files
    assert one.read_files
    return one.read_files(one.write_files(fitted)).items


@pytest.mark.spec("X6")
def test_a_checklist_comes_back_from_our_own_format_with_its_ids(checklists: Checklists) -> None:
    checklists.rewrite(
        HERE,
        [
            {"content": "Build", "activeForm": "Building", "status": "completed"},
            {"content": "Ship", "activeForm": "Shipping", "status": "in_progress", "id": "ship"},
            {"content": "Sign", "activeForm": "Sign", "status": "pending", "check": {"file": "dist/x.sig"}},
            {"content": "Fax", "activeForm": "Fax", "status": "cancelled", "reason": "Nobody has one."},
        ],
    )
    entries = through("json", sources.checklist_items(checklists.get("here")))
    decided, made = carry_out(entries, "json", ChecklistTarget(checklists, THERE))
    assert decided.lost == []
    assert [one.title for one in made] == ["Build", "Ship", "Sign", "Fax"]
    assert checklists.get("there").items == checklists.get("here").items


@pytest.mark.spec("X6", "V2")
def test_the_command_of_a_check_is_exported_but_not_imported(checklists: Checklists) -> None:
    checklists.add(HERE, "Build", check="make", reason="test")
    entries = through("json", sources.checklist_items(checklists.get("here")))
    assert entries[0].check == {"command": "make"}
    decided, _ = carry_out(entries, "json", ChecklistTarget(checklists, THERE))
    assert [str(loss) for loss in decided.lost] == ["check (only checks of files are imported) of 1 item"]
    assert checklists.get("there").items[0].verification.check is None


@pytest.mark.spec("X6")
@pytest.mark.parametrize("format", FORMATS)
def test_the_same_file_twice_adds_nothing(format: str, checklists: Checklists, store: Store) -> None:
    entries = through(
        format,
        [
            ExchangeItem("A", "a"),
            ExchangeItem("B", "b"),
            ExchangeItem("a ", "c"),
            ExchangeItem("D", "d", status=TodoStatus.COMPLETED),
        ],
    )
    makers: list[Callable[[], ImportTarget]] = [
        lambda: ChecklistTarget(checklists, HERE),
        lambda: PlanTarget(store, HERE, owners=False),
    ]
    for make in makers:
        first, made = carry_out(entries, format, make())
        assert [one.title for one in made] == ["A", "B", "a", "D"]
        assert first.skipped == []
        again, more = carry_out(entries, format, make())
        assert (len(again.skipped), more) == (4, [])
        third, more = carry_out([*entries, ExchangeItem("New", "n")], format, make())
        assert ([one.title for one in more], len(third.skipped)) == (["New"], 4)


@pytest.mark.spec("X6")
def test_a_title_is_skipped_as_often_as_it_is_there(checklists: Checklists) -> None:
    checklists.add(HERE, "Test", reason="test")
    decided, made = carry_out(
        [ExchangeItem("Test", "1"), ExchangeItem("Test", "2")], "markdown", ChecklistTarget(checklists, HERE)
    )
    assert (len(made), len(decided.skipped)) == (1, 1)
    # What is there by its id is not there by its title for another.
    (_, second) = checklists.get("here").items
    entries = [ExchangeItem("Test", "new"), ExchangeItem("Test", "newer"), ExchangeItem("Test", second.id)]
    decided, _ = carry_out(entries, "json", ChecklistTarget(checklists, HERE))
    assert [one.id for one in decided.new] == ["newer"]


@pytest.mark.spec("X6")
def test_what_is_on_the_list_stays_and_one_item_is_in_progress(checklists: Checklists) -> None:
    checklists.add(HERE, "Mine", reason="test")
    entries = [
        ExchangeItem("A", "1", status=TodoStatus.IN_PROGRESS),
        ExchangeItem("B", "2", status=TodoStatus.IN_PROGRESS, details="More"),
    ]
    decided, _ = carry_out(entries, "claude", ChecklistTarget(checklists, HERE))
    assert [(item.content, item.status.value) for item in checklists.get("here").items] == [
        ("Mine", "pending"),
        ("A", "in_progress"),
        ("B", "pending"),
    ]
    assert decided.remarks == ["only one item can be in progress; 1 more changed to pending"]
    assert list(map(str, decided.lost)) == ["details of 1 item"]
    # A number says where a task stood, so it is no id of ours.
    assert not {"1", "2"} & {item.id for item in checklists.get("here").items}


@pytest.mark.spec("X6")
def test_more_than_a_checklist_holds_is_refused_whole(checklists: Checklists) -> None:
    checklists.add(HERE, "Mine", reason="test")
    with pytest.raises(InvalidInput, match=r"it has 1, and the import adds 20. Nothing was imported"):
        carry_out([ExchangeItem(f"Task {n}") for n in range(20)], "markdown", ChecklistTarget(checklists, HERE))
    assert len(checklists.get("here").items) == 1


@pytest.mark.spec("X6")
def test_what_somebody_adds_meanwhile_is_not_overwritten(checklists: Checklists) -> None:
    target = ChecklistTarget(checklists, HERE)
    checklists.add(HERE, "Added meanwhile", reason="test")
    with pytest.raises(Conflict, match="Another writer changed the"):
        target.write([ExchangeItem("Imported")], {})
    assert [item.content for item in checklists.get(HERE.conversation_id).items] == ["Added meanwhile"]


@pytest.mark.spec("X6")
def test_a_plan_comes_back_with_what_it_waits_for_and_what_came_of_it(
    store: Store, plans: Plans, conversations: Conversations, clock: StoppedClock
) -> None:
    turn = TurnScope("here", PERSON, conversations.open_turn(HERE).id)
    items = [
        {"title": "Build", "context": "All of it", "completionCriteria": "It runs", "agentType": "coder"},
        {"title": "Deploy", "blockedBy": ["Build", {"person": "Which region?"}], "resources": ["src/app.py"]},
        {"title": "Fax", "blockedBy": [{"event": "paper"}, {"time": "2027-01-01T00:00:00Z"}]},
        {"title": "Work"},
    ]
    made = plans.create(turn, plan_validation.parse_items(items)).todos
    plans.report_event("here", "paper", PERSON)
    plans.end(turn, made[0].id, "It ran.")
    plans.end(turn, made[2].id, "No paper.", PlanAction.CANCEL)
    plans.start(turn, made[3].id)
    before = sources.turn_items(plans, store, turn)
    assert [one.waits for one in before] == [
        (),
        (("person", "Which region?"),),
        (("time", "2027-01-01T00:00:00Z"),),
        (),
    ]

    decided, _ = carry_out(through("json", before), "json", PlanTarget(store, THERE, owners=True))

    current = conversations.current_turn("there")
    assert current
    after = sources.turn_items(plans, store, TurnScope("there", PERSON, current.id))
    names = {entry.id: entry.title for entry in [*before, *after]}

    def timeless(entries: list[ExchangeItem]) -> list[ExchangeItem]:
        return [replace(one, id="", blocked_by=tuple(names[other] for other in one.blocked_by)) for one in entries]

    assert timeless(after) == timeless(before)
    assert {str(one) for one in decided.lost} == {
        "id of 4 items",
        "time of creation of 4 items",
        "time of start of 1 item",
        "time of end of 2 items",
    }


@pytest.mark.spec("X6", "C12")
def test_items_that_wait_for_each_other_or_have_one_title_are_planned_all_the_same(
    store: Store, plans: Plans, conversations: Conversations
) -> None:
    entries = [
        ExchangeItem("Tests", "1.1", parent="1", blocked_by=("2.1",)),
        ExchangeItem("Parser", "1"),
        ExchangeItem("Tests", "2.1", parent="2", blocked_by=("1.1",), status=TodoStatus.IN_PROGRESS),
        ExchangeItem("Printer", "2", blocked_by=("1", "2.1"), status=TodoStatus.IN_PROGRESS),
    ]
    target = PlanTarget(store, HERE, owners=False)
    decided = plan_import(ParsedFile(entries, []), FORMATS["taskmaster"], target)
    made, remarks = decided.execute(target)
    current = conversations.current_turn("here")
    assert current
    planned = sources.turn_items(plans, store, TurnScope("here", PERSON, current.id))
    places = {entry.id: place for place, entry in enumerate(planned)}
    assert [[places[other] for other in one.blocked_by] for one in planned] == [[2], [], [0], [1, 2]]
    assert [one.details for one in planned] == ["Part of: Parser", "", "Part of: Printer", ""]
    assert [one.status for one in made] == ["pending"] * 4
    assert any("open todos are called “Tests”" in remark for remark in remarks)
    assert "“Tests” was in progress and is pending now, because it waits" in remarks
    assert str(decided.lost[-1]) == "parent (named in the details) of 2 items"


@pytest.mark.spec("X6")
def test_what_is_added_later_waits_for_what_was_there(store: Store, plans: Plans, conversations: Conversations) -> None:
    first = [ExchangeItem("A", "1")]
    carry_out(first, "claude", PlanTarget(store, HERE, owners=False))
    carry_out([*first, ExchangeItem("B", "2", blocked_by=("1",))], "claude", PlanTarget(store, HERE, owners=False))
    current = conversations.current_turn("here")
    assert current
    a, b = sources.turn_items(plans, store, TurnScope("here", PERSON, current.id))
    assert b.blocked_by == (a.id,)


@pytest.mark.spec("X6")
def test_an_import_that_is_ended_halfway_has_done_nothing(
    store: Store, conversations: Conversations, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        ExchangeItem("A", "a-1", status=TodoStatus.COMPLETED),
        ExchangeItem("B", "a-2", status=TodoStatus.CANCELLED),
    ]
    with monkeypatch.context() as patch:
        steps = Mock(side_effect=[DEFAULT, KeyboardInterrupt], wraps=end_todo)
        patch.setattr(plan_target, "end_todo", steps)
        with pytest.raises(KeyboardInterrupt):
            carry_out(entries, "beads", PlanTarget(store, HERE, owners=False))
    assert conversations.current_turn("here") is None
    _, made = carry_out(entries, "beads", PlanTarget(store, HERE, owners=False))
    assert [one.status for one in made] == ["completed", "cancelled"]


@pytest.mark.spec("X6")
def test_two_imports_at_once_add_nothing_twice(store: Store, plans: Plans, conversations: Conversations) -> None:
    first, second = (PlanTarget(store, HERE, owners=False) for _ in range(2))
    entries = [ExchangeItem("A", "a-1", status=TodoStatus.COMPLETED), ExchangeItem("B", "a-2")]
    decided = plan_import(ParsedFile(entries, []), FORMATS["beads"], second)
    carry_out(entries, "beads", first)
    with pytest.raises(Conflict, match="Nothing was imported; try again"):
        decided.execute(second)
    assert not carry_out(entries, "beads", PlanTarget(store, HERE, owners=False))[1]
    current = conversations.current_turn("here")
    assert current
    assert [one.title for one in sources.turn_items(plans, store, TurnScope("here", PERSON, current.id))] == ["A", "B"]


# --- missions ---------------------------------------------------------------------------------------------


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def of(store: Store, *, pillar: str = BUILD, owners: bool = False) -> MissionTarget:
    return MissionTarget(store, MissionScope("here", PERSON), SLUG, pillar, owners=owners)


@pytest.mark.spec("X6", "M2")
def test_a_mission_takes_what_it_has_room_for_and_nothing_else(team: Team, store: Store) -> None:
    room = team.todos.capacity(SLUG)
    most = room.active_limit + room.backlog_limit
    full = rf"“Task {most}”, number {most + 1} of {most + 1}: Backlog limit .* Nothing was imported"
    with pytest.raises(IllegalTransition, match=full):
        carry_out([ExchangeItem(f"Task {n}", f"bd-{n}") for n in range(most + 1)], "beads", of(store))
    assert team.todos.capacity(SLUG).active == 0
    entries = [ExchangeItem(f"Task {n}", f"bd-{n}") for n in range(12)]
    target = of(store)
    decided = plan_import(ParsedFile(entries, []), FORMATS["beads"], target)
    made, remarks = decided.execute(target)
    assert [one.status for one in made] == ["pending"] * 10 + ["backlog"] * 2
    assert remarks == ["Active TODO limit (10) reached. Created in backlog instead. (2 times)"]


@pytest.mark.spec("X6")
def test_a_missions_todos_come_back_and_are_known_by_their_ids(team: Team, store: Store) -> None:
    todo = team.create(
        "Cache loaders",
        description="All",
        justification="Slow",
        completion_criteria="Fast",
        deadline="2026-03-01",
        priority=TodoPriority.HIGH,
        also_affects=(ONBOARDING,),
        check={"name": "tests"},
        assigned_agent="coder",
    )
    entries = through("json", sources.mission_items(team.todos, SLUG, None))
    assert entries[0].extra == {"pillar": BUILD}
    again, made = carry_out(entries, "json", of(store, owners=True))
    assert (made, len(again.skipped)) == ([], 1)

    team.update(todo, TodoAction.CANCEL)
    elsewhere = [replace(entries[0], id="somewhere-else")]
    decided, made = carry_out(elsewhere, "json", of(store, owners=True))
    assert [one.status for one in made] == ["pending"]
    assert {str(one) for one in decided.lost} == {"time of creation of 1 item", "pillar of 1 item"}
    new = team.todos.get(made[0].id)
    told = ("title", "description", "justification", "completion_criteria", "deadline", "priority", "also_affects")
    assert all(getattr(new, name) == getattr(todo, name) for name in told)
    assert (new.completion_check, new.assigned_agent) == (todo.completion_check, "coder")
    # By its id, though its title is another now.
    renamed, made = carry_out([replace(elsewhere[0], title="Other")], "json", of(store))
    assert (made, len(renamed.skipped)) == ([], 1)


@pytest.mark.spec("X6")
def test_all_of_a_missions_todos_are_exported(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PAGE_SIZE", 2)
    made = [team.create(f"Task {n}").id for n in range(5)]
    assert sorted(entry.id for entry in sources.mission_items(team.todos, SLUG, None)) == sorted(made)


@pytest.mark.spec("X6", "M8")
def test_nothing_begins_or_ends_in_a_mission_by_being_imported(team: Team, store: Store) -> None:
    entries = [
        ExchangeItem("Doing", "bd-1", status=TodoStatus.IN_PROGRESS, owner="steve"),
        ExchangeItem("Done", "bd-2", status=TodoStatus.COMPLETED),
        ExchangeItem("Later", "bd-3", status=TodoStatus.BACKLOG),
        ExchangeItem("Odd", "bd-4", check={"command": ["rm", "-rf", "/"]}),
    ]
    decided, made = carry_out(entries, "beads", of(store))
    assert [(one.title, one.status) for one in made] == [("Doing", "pending"), ("Later", "backlog"), ("Odd", "pending")]
    assert {str(one) for one in decided.lost} == {
        "state (in_progress becomes pending) of 1 item",
        "1 completed item, left out",
        "owner of 1 item",
        "check (commands are not imported) of 1 item",
    }
    assert all(team.todos.get(one.id).completion_check is None for one in made)


@pytest.mark.spec("X6")
def test_everything_is_checked_before_a_mission_gets_anything(team: Team, store: Store) -> None:
    entries = [
        ExchangeItem("Fine", "bd-1"),
        ExchangeItem("Late", "bd-2", deadline="someday"),
        ExchangeItem("Wide", "bd-3", also_affects=("nowhere",)),
        ExchangeItem("Checked", "bd-4", check={"name": "nothing"}),
        ExchangeItem("Measured", "bd-5", check={"metric": "nothing", "atMost": 1}),
    ]
    with pytest.raises(NotFound, match="no pillar 'nowhere'"):
        carry_out(entries, "json", of(store, pillar="nowhere"))
    with pytest.raises(InvalidInput) as refused:
        plan_import(ParsedFile(entries, []), FORMATS["json"], of(store)).execute(of(store), dry_run=True)
    told = str(refused.value)
    for part in (
        "“Late”: deadline",
        "“Wide”: alsoAffects",
        "check 'nothing'",
        "metric 'nothing'",
    ):
        assert part in told
    assert team.todos.list(SLUG).items == []
