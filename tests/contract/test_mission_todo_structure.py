"""Edits, swaps, sub-items, links, labels, comments and files of mission todos (M18)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import nothing_changes
from tests.contract.missions import BUILD, ONBOARDING, Team, developer_experience, mission_file

from punchlist.audit.check import check
from punchlist.conversations.service import Conversations
from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed
from punchlist.missions.config import file
from punchlist.missions.model import LinkKind, NewLink
from punchlist.missions.planning import prompts
from punchlist.missions.planning.todo_context import MAX_LENGTH, todo_context
from punchlist.missions.recommendations.service import Recommendations
from punchlist.missions.strategies import Strategies
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.storage.schema_version import SCHEMA_VERSION
from punchlist.storage.store import Store
from punchlist.views.board import BoardFilter, read_board
from punchlist.views.todo_detail import detail_json, read_detail

pytestmark = pytest.mark.spec("M18")


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def update(team: Team, id: str, action: str, **more: Any) -> dict[str, Any]:
    return team.call(team.lead, "update", todoId=id, action=action, **{"reason": "a test", **more})


def healthy(team: Team) -> None:
    assert check(team.store, SCHEMA_VERSION).problems == []


# --- edit -------------------------------------------------------------------------------------------------


def test_an_edit_changes_only_the_fields_given_and_keeps_old_and_new_values(team: Team) -> None:
    todo = team.create("Profile", description="Run it", completion_criteria="A list")
    changed = update(
        team, todo.id, "edit", title="Profile the build", priority="high", deadline="2026-03-01", description=""
    )
    assert (changed["title"], changed["priority"], changed["deadline"]) == ("Profile the build", "high", "2026-03-01")
    assert (changed["description"], changed["completionCriteria"]) == ("Run it", "A list")
    event = team.trail()[-1]
    assert (event.action, event.reason, str(event.actor)) == ("edit", "a test", "lead:mission-lead")
    assert event.payload()["before"] == {"title": "Profile", "priority": "medium", "deadline": None}
    assert event.payload()["title"] == "Profile the build"
    cleared = update(team, todo.id, "edit", clear=["deadline", "description"])
    assert (cleared["deadline"], cleared["description"]) == (None, "")
    healthy(team)


def test_of_two_editors_with_the_same_version_the_second_is_told(team: Team) -> None:
    todo = team.create("A")
    first = update(team, todo.id, "edit", title="B", version=todo.version)
    with nothing_changes(team.store), pytest.raises(Conflict, match=f"it is now {first['version']}"):
        update(team, todo.id, "edit", title="C", version=todo.version)
    assert update(team, todo.id, "edit", title="C", version=first["version"])["title"] == "C"


def test_an_edit_reports_every_problem_and_changes_nothing(team: Team) -> None:
    todo = team.create("A")
    with nothing_changes(team.store), pytest.raises(InvalidInput) as refused:
        update(team, todo.id, "edit", deadline="2020-01-01", alsoAffects=["nowhere"], check={"name": "none"})
    assert [problem.partition(":")[0] for problem in refused.value.problems] == [
        "check.name",
        "alsoAffects[0]",
        "deadline",
    ]
    with pytest.raises(NotAllowed, match="only a person may give a todo its own command"):
        update(team, todo.id, "edit", check={"command": ["true"]})
    with pytest.raises(InvalidInput, match="text: is only for comment and feedback and attach; leave it out to edit"):
        update(team, todo.id, "edit", title="B", text="x")
    done = team.todo_in(TodoStatus.COMPLETED)
    with pytest.raises(IllegalTransition):
        update(team, done.id, "edit", title="B")


def test_an_owners_edit_is_a_recommendation_that_the_lead_can_accept(team: Team) -> None:
    todo, other = team.create("A"), team.todo_in(TodoStatus.BACKLOG, "B")
    wanted: dict[str, dict[str, Any]] = {
        "edit": {"title": "Better", "priority": "high", "labels": ["q3"]},
        "label": {"labels": ["perf"]},
        "link": {"link": "blocks", "otherId": other.id},
        "swap": {"otherId": other.id},
    }
    for action, more in wanted.items():
        with pytest.raises(NotAllowed, match="It was posted to the mission chat as a recommendation"):
            team.call(team.owner, "update", todoId=todo.id, action=action, reason="I know it", **more)
    assert team.todos.get(todo.id) == todo
    recommendations = Recommendations(team.store)
    assert [view.recommendation.kind for view in recommendations.list(team.slug)] == list(wanted)
    for number in range(1, len(wanted) + 1):
        recommendations.accept(team.lead, team.slug, number, "yes")
    now = team.todos.get(todo.id)
    assert (now.title, now.priority, now.label_names, now.status) == ("Better", "high", ("q3", "perf"), "backlog")
    assert [(each.name, each.todo.id) for each in team.todos.links(todo.id)] == [("blocks", other.id)]
    healthy(team)


def test_an_edit_of_work_in_progress_reaches_its_owner(team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS, "A", completion_criteria="Old")
    request = prompts.delegation_text(todo)
    assert prompts.changed_note(todo, request) == ""
    update(team, todo.id, "edit", completionCriteria="New criteria")
    assert "It now says:\n\nCompletion criteria: New criteria" in prompts.changed_note(team.todos.get(todo.id), request)
    messages = Conversations(team.store).messages_outside_turns(team.pillars[BUILD].todo_conversation_id)
    assert f"(TODO {todo.id}): completion criteria." in messages[-1].content


# --- swap -------------------------------------------------------------------------------------------------


@pytest.mark.spec("M2")
def test_a_swap_works_when_both_lists_are_full_and_needs_one_of_each(store: Store) -> None:
    team = developer_experience(store, active=2, backlog=1)
    first, running = team.create("first"), team.todo_in(TodoStatus.IN_PROGRESS, "running")
    waiting = team.create("waiting")
    assert waiting.status is TodoStatus.BACKLOG
    swapped = update(team, first.id, "swap", otherId=waiting.id)
    assert (swapped["status"], swapped["other"]["id"], swapped["other"]["status"]) == ("backlog", waiting.id, "pending")
    assert team.todos.capacity(team.slug).as_json()["active"] == 2
    with (
        nothing_changes(store),
        pytest.raises(IllegalTransition, match="needs one pending todo and one in the backlog"),
    ):
        update(team, running.id, "swap", otherId=first.id)
    healthy(team)


# --- sub-items --------------------------------------------------------------------------------------------


def test_sub_items_count_against_the_limit_and_hold_their_parent_open(store: Store) -> None:
    team = developer_experience(store, active=3, backlog=5)
    parent = team.todo_in(TodoStatus.IN_PROGRESS, "parent")
    ids = [
        team.call(team.owner, "create", pillarSlug=BUILD, title=name, parentId=parent.id)["id"] for name in ("a", "b")
    ]
    assert team.create("more").status is TodoStatus.BACKLOG
    with (
        nothing_changes(store),
        pytest.raises(IllegalTransition, match=r"its sub-items “a” .pending., “b” .pending. are"),
    ):
        team.todos.complete(team.lead, team.slug, parent.id, "done")
    update(team, ids[0], "start")
    team.todos.complete(team.lead, team.slug, ids[0], "done")
    update(team, ids[1], "cancel")
    (card,) = [item for item in team.call(team.lead, "list")["items"] if item["id"] == parent.id]
    assert card["subItems"] == {"total": 2, "completed": 1, "cancelled": 1}
    assert team.todos.complete(team.lead, team.slug, parent.id, "done").todo.status is TodoStatus.COMPLETED
    healthy(team)


def test_cancelling_a_parent_cancels_its_open_sub_items(team: Team) -> None:
    parent = team.create("parent")
    child = team.create("child", parent_id=parent.id)
    team.update(child, TodoAction.START)
    update(team, parent.id, "cancel")
    assert team.todos.get(child.id).outcome == "Its parent was cancelled: a test"
    healthy(team)


def test_sub_items_have_one_level_in_one_pillar(team: Team) -> None:
    parent, ended = team.create("parent"), team.todo_in(TodoStatus.CANCELLED)
    child = team.create("child", parent_id=parent.id)
    refused = {
        "is a sub-item itself": (BUILD, child.id),
        "belongs to another pillar": (ONBOARDING, parent.id),
        "only an open todo gets sub-items": (BUILD, ended.id),
        "is not in mission": (BUILD, "nothing"),
    }
    for words, (pillar, id) in refused.items():
        with nothing_changes(team.store), pytest.raises(InvalidInput, match=f"parentId: .*{words}"):
            team.call(team.lead, "create", pillarSlug=pillar, title="A", parentId=id)
    with pytest.raises(InvalidInput, match="has sub-items"):
        update(team, parent.id, "edit", parentId=team.create("other").id)
    assert "parentId" not in update(team, child.id, "edit", clear=["parentId"])


# --- links ------------------------------------------------------------------------------------------------


def test_a_blocked_todo_starts_only_when_its_blocker_has_ended(team: Team) -> None:
    blocker = team.create("Measure first")
    made = team.call(team.lead, "create", pillarSlug=BUILD, title="Then act", links=[{"blockedBy": blocker.id}])
    with nothing_changes(team.store), pytest.raises(IllegalTransition, match="is blocked by “Measure first”"):
        update(team, made["id"], "start")
    board = read_board(team.store, team.slug)
    assert [wait.text for wait in board.waits[made["id"]]] == ["blocked by “Measure first”"]
    (item,) = [item for item in team.call(team.lead, "list")["items"] if item["id"] == made["id"]]
    assert item["blockedBy"] == [blocker.id]
    update(team, blocker.id, "cancel")
    assert update(team, made["id"], "start")["status"] == "in_progress"
    healthy(team)


def test_links_are_seen_from_both_ends_and_can_be_removed_from_either(team: Team) -> None:
    a, b = team.create("A"), team.create("B")
    for name in ("blocks", "duplicates", "follows-from"):
        update(team, a.id, "link", link=name, otherId=b.id)
    assert sorted(each.name for each in team.todos.links(a.id)) == ["blocks", "duplicates", "followsFrom"]
    assert sorted(each.name for each in team.todos.links(b.id)) == ["blockedBy", "duplicatedBy", "followedBy"]
    assert update(team, a.id, "link", link="blocks", otherId=b.id)["warning"] == "This link exists already."
    update(team, b.id, "unlink", link="blockedBy", otherId=a.id)
    assert sorted(each.name for each in team.todos.links(a.id)) == ["duplicates", "followsFrom"]
    with pytest.raises(InvalidInput, match="has no such link"):
        update(team, b.id, "unlink", link="blockedBy", otherId=a.id)
    healthy(team)


def test_circles_are_refused_also_through_sub_items(team: Team) -> None:
    a, b, c = (team.create(name) for name in "ABC")
    update(team, a.id, "link", link="blocks", otherId=b.id)
    update(team, b.id, "link", link="blocks", otherId=c.id)
    with nothing_changes(team.store), pytest.raises(IllegalTransition, match="would close a circle: “A” → “B” → “C”"):
        update(team, c.id, "link", link="blocks", otherId=a.id)
    with pytest.raises(InvalidInput, match="linked to itself"):
        update(team, a.id, "link", link="duplicates", otherId=a.id)
    # A sub-item ends before its parent: the parent cannot block it.
    child = team.create("part of C", parent_id=c.id)
    with nothing_changes(team.store), pytest.raises(IllegalTransition, match="would close a circle"):
        update(team, c.id, "link", link="blocks", otherId=child.id)
    with nothing_changes(team.store), pytest.raises(InvalidInput, match="so neither could end"):
        update(team, b.id, "edit", parentId=a.id)


def test_an_owner_cannot_block_the_work_of_another_pillar(team: Team) -> None:
    theirs = team.create("Theirs", ONBOARDING)
    new = {"pillarSlug": BUILD, "title": "Mine"}
    with nothing_changes(team.store), pytest.raises(NotAllowed, match="You act in pillar"):
        team.call(team.owner, "create", **new, links=[{"blocks": theirs.id}])
    made = team.call(team.owner, "create", **new, links=[{"blockedBy": theirs.id}])
    assert team.todos.links(made["id"])[0].name == "blockedBy"


# --- labels, comments, files ------------------------------------------------------------------------------


def test_labels_are_added_removed_and_filter_lists_and_boards(team: Team, clock: StoppedClock) -> None:
    todo, done = team.create("A", labels=("perf",)), team.todo_in(TodoStatus.COMPLETED, "B", labels=("perf", "50%_x"))
    team.create("C", labels=("performance",))
    assert update(team, todo.id, "label", labels=["q3", "-perf", "q3"])["labels"] == ["q3"]
    assert [item["title"] for item in team.call(team.lead, "list", label="perf")["items"]] == ["B"]
    assert [item["title"] for item in team.call(team.lead, "list", label="50%_x")["items"]] == ["B"]
    board = read_board(team.store, team.slug, BoardFilter(label="perf"))
    assert ([each.id for each in board.todos.items], board.counts[TodoStatus.COMPLETED]) == ([done.id], 1)
    for label in ('say "hi"', "a,b", "two\nlines", "x" * 51):
        with nothing_changes(team.store), pytest.raises(InvalidInput, match=r"labels\["):
            update(team, todo.id, "label", labels=[label])
    with pytest.raises(InvalidInput, match="has no label 'nope'"):
        update(team, todo.id, "label", labels=["-nope"])


def test_the_next_worker_reads_comments_files_and_links_within_bounds(team: Team) -> None:
    todo = team.create("A")
    assert todo_context(team.store, todo) == ""
    team.call(team.owner, "update", todoId=todo.id, action="comment", text="Look at the cache.\n# Not a heading")
    update(team, todo.id, "attach", path="docs/profile.md")
    update(team, todo.id, "attach", name="log", text="3 loaders\n")
    team.create("part", parent_id=todo.id)
    text = todo_context(team.store, todo)
    assert "owner:pillar-owner:\n> Look at the cache.\n> # Not a heading" in text
    assert "read them first:\n- docs/profile.md" in text
    assert "Attached text “log”:\n> 3 loaders" in text
    assert "Sub-items, which must end before it is completed:\n- “part” (" in text
    assert text in prompts.delegation_text(todo, text)
    for number in range(30):
        team.todos.comment(team.person, team.slug, todo.id, f"{number} " + "long " * 900)
    assert len(todo_context(team.store, todo)) <= MAX_LENGTH
    shown = detail_json(read_detail(team.store, todo.id))
    assert (len(shown["comments"]), sorted(each["name"] for each in shown["files"])) == (31, ["docs/profile.md", "log"])
    assert shown["subItems"]["total"] == 1
    update(team, todo.id, "detach", name="log")
    assert [each.name for each in team.todos.files(todo.id)] == ["docs/profile.md"]
    healthy(team)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "a/../../b", "~/x", "C:\\x", "..\\x", "a\nb"])
def test_no_path_leads_out_of_the_workspace(team: Team, path: str) -> None:
    todo = team.create("A")
    with nothing_changes(team.store), pytest.raises(InvalidInput, match="path"):
        update(team, todo.id, "attach", path=path)


def test_files_and_workers_are_limited(team: Team) -> None:
    todo = team.create("A")
    for number in range(20):
        update(team, todo.id, "attach", path=f"f{number}")
    with nothing_changes(team.store), pytest.raises(IllegalTransition, match="20 files, the limit"):
        update(team, todo.id, "attach", path="one-more")
    with nothing_changes(team.store), pytest.raises(Conflict, match="has a file 'f0' already"):
        update(team, todo.id, "attach", path="f0")
    with nothing_changes(team.store), pytest.raises(NotAllowed):
        team.call(team.worker, "update", todoId=todo.id, action="comment", text="x")
    link = NewLink(LinkKind.BLOCKS, todo.id)
    with nothing_changes(team.store), pytest.raises(NotAllowed):
        team.todos.link(team.worker, team.slug, todo.id, link, "x")


# --- unarchive --------------------------------------------------------------------------------------------


@pytest.mark.spec("M14")
def test_an_archived_todo_can_be_shown_again_for_a_while(team: Team, clock: StoppedClock) -> None:
    todo = team.todo_in(TodoStatus.COMPLETED, "old")
    with nothing_changes(team.store), pytest.raises(IllegalTransition, match="is not archived"):
        update(team, todo.id, "unarchive")
    clock.advance(days=31)
    recent = team.todo_in(TodoStatus.CANCELLED, "recent")
    assert [item["id"] for item in team.call(team.lead, "list")["items"]] == [recent.id]
    update(team, todo.id, "unarchive")
    assert [item["id"] for item in team.call(team.lead, "list")["items"]] == [recent.id, todo.id]
    first = team.call(team.lead, "list", limit=1)
    assert [one["id"] for one in team.call(team.lead, "list", limit=1, cursor=first["nextCursor"])["items"]] == [
        todo.id
    ]
    board = read_board(team.store, team.slug)
    assert ([each.id for each in board.todos.items], board.counts[TodoStatus.COMPLETED]) == ([recent.id, todo.id], 1)
    clock.advance(days=31)
    assert team.call(team.lead, "list")["items"] == []
    healthy(team)


# --- strategies -------------------------------------------------------------------------------------------


def test_strategies_of_the_lead_survive_the_next_version_of_the_file(team: Team) -> None:
    strategies = Strategies(team.store)
    strategies.add(team.lead, team.slug, BUILD, "Cache modules", "hits are low")
    strategies.retire(team.lead, team.slug, BUILD, "slow loaders", "all replaced")
    with nothing_changes(team.store), pytest.raises(NotAllowed):
        strategies.add(team.owner, team.slug, BUILD, "Mine", "x")

    def current() -> list[tuple[str, str]]:
        (state,) = [state for state in team.missions.pillars(team.mission) if state.pillar.slug == BUILD]
        return [(each.description, each.status) for each in state.strategies]

    expected = [("Replace slow loaders", "dropped"), ("Cache modules", "active")]
    assert current() == expected
    raw = mission_file(active=4)
    apply(team, raw)
    assert current() == expected
    raw["pillars"][0]["strategies"].append({"description": "Split bundles", "status": "proposed"})
    apply(team, raw)
    assert current() == [expected[0], ("Split bundles", "proposed"), expected[1]]
    raw["pillars"][0]["strategies"][0]["status"] = "paused"
    apply(team, raw)
    assert current()[0] == ("Replace slow loaders", "paused")
    raw["pillars"][0]["strategies"] = []
    apply(team, raw)
    assert current() == [expected[1]]
    healthy(team)


def apply(team: Team, raw: dict[str, Any]) -> None:
    team.missions.apply(team.person, file.parse_value(raw), "the file")


# --- feedback ---------------------------------------------------------------------------------------------


@pytest.mark.spec("M8")
def test_the_lead_sends_work_back_and_the_owner_reads_it(team: Team) -> None:
    todo, pending = team.todo_in(TodoStatus.IN_PROGRESS), team.create("B")
    team.todos.report(team.owner, team.slug, todo.id, "Done, I think.")
    update(team, todo.id, "feedback", text="The list\nis missing.")
    assert [(each.kind, each.text) for each in team.todos.messages(todo.id)] == [
        ("todo_result", "Done, I think."),
        ("todo_feedback", "The list\nis missing."),
    ]
    with nothing_changes(team.store), pytest.raises(NotAllowed, match="may not give feedback"):
        team.call(team.owner, "update", todoId=todo.id, action="feedback", text="fine")
    with nothing_changes(team.store), pytest.raises(IllegalTransition, match="needs a todo in progress"):
        update(team, pending.id, "feedback", text="x")
