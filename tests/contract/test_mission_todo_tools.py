"""What a model calls: the seed's fields, every problem by its field, and no tool for those who may not (M5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.conftest import StoppedClock
from tests.contract.front import everything, nothing_changes
from tests.contract.missions import BUILD, ONBOARDING, SLUG, Team, developer_experience
from tests.contract.test_hostile_text import HOSTILE, by_field, failures

from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed, NotFound
from punchlist.kernel.events import Role
from punchlist.kernel.tool import Schema
from punchlist.missions.chats import unquote
from punchlist.missions.model import MissionScope, MissionTodo
from punchlist.missions.todos.lifecycle import TodoAction, TodoStatus
from punchlist.missions.todos.tool_updates import ACTIONS
from punchlist.missions.todos.tools import mission_tools
from punchlist.storage.store import Store

# Section 3.1 of the seed.
SEED: Final = [
    "id",
    "pillarId",
    "missionId",
    "title",
    "description",
    "justification",
    "completionCriteria",
    "deadline",
    "status",
    "priority",
    "assignedAgent",
    "outcome",
    "createdAt",
    "startedAt",
    "completedAt",
]
PROFILE: Final[dict[str, Any]] = {
    "pillarSlug": BUILD,
    "title": "Profile webpack build to identify top 3 slow plugins",
    "description": "Run webpack --profile --json.\nAnalyze the output.",
    "justification": "Build time is 72s, 12s above the 60s target.",
    "completionCriteria": "A list of the top 3 plugins.",
    "deadline": "2026-02-28",
    "priority": "high",
    "assignedAgent": "pillar-owner",
}


@pytest.fixture
def team(store: Store) -> Team:
    return developer_experience(store)


def problems(team: Team, tool: str, scope: MissionScope | None = None, **arguments: Any) -> list[str]:
    with nothing_changes(team.store), pytest.raises(InvalidInput) as refused:
        team.call(scope or team.lead, tool, **arguments)
    return refused.value.problems


@pytest.mark.spec("M3", "M5", "M6")
def test_the_three_tools_that_change_return_the_todo_with_the_seeds_fields(team: Team, clock: StoppedClock) -> None:
    made = team.call(team.owner, "create", **PROFILE)
    assert made == {
        **{name: value for name, value in PROFILE.items() if name != "pillarSlug"},
        "id": made["id"],
        "pillarId": team.pillars[BUILD].id,
        "missionId": team.mission.id,
        "status": "pending",
        "outcome": None,
        "createdAt": "2026-02-21T09:00:00.000000Z",
        "startedAt": None,
        "completedAt": None,
        "version": made["version"],
    }
    assert sorted(made) == sorted([*SEED, "version"])
    clock.advance(minutes=1)
    started = team.call(team.lead, "update", todoId=made["id"], action="start", reason="It got slower.")
    run_id = started.pop("runId")
    version = started["version"]
    assert version != made["version"]
    assert started == {
        **made,
        "status": "in_progress",
        "startedAt": "2026-02-21T09:01:00.000000Z",
        "version": version,
    }
    clock.advance(minutes=1)
    outcome = "ts-loader 39%, css-loader 17%, terser 12%"
    done = team.call(team.lead, "complete", todoId=made["id"], outcome=outcome, metricsImpacted=["local-build-time"])
    assert done.pop("runId") != run_id
    assert done == {
        **started,
        "status": "completed",
        "outcome": outcome,
        "completedAt": "2026-02-21T09:02:00.000000Z",
        "endedAt": "2026-02-21T09:02:00.000000Z",
        "mark": "accepted",
        "version": done["version"],
    }
    listed = team.call(team.lead, "list")
    assert listed == {
        "items": [{**done, "pillarSlug": BUILD}],
        "summary": {"active": 0, "activeTodoLimit": 10, "backlog": 0, "backlogTodoLimit": 50},
    }


@pytest.mark.spec("M5")
def test_what_is_not_said_is_as_the_seed_has_it(team: Team) -> None:
    slugs = {"missionSlug": f" {SLUG} ", "pillarSlug": f"{BUILD}\n"}
    made = team.call(team.lead, "create", **slugs, title=" A ", deadline=None, assignedAgent=None)
    said = ("title", "description", "justification", "completionCriteria", "deadline", "priority", "assignedAgent")
    assert [made[name] for name in said] == ["A", "", "", "", None, "medium", None]
    assert made["status"] == "pending"


def fits(value: Any, schema: Schema) -> bool:
    """Whether a value has what a schema asks for, and nothing that it does not know."""
    if "enum" in schema and value not in schema["enum"]:
        return False
    match value:
        case dict() if "properties" in schema:
            known: dict[str, Schema] = schema["properties"]
            whole = set(schema["required"]) <= set(value) <= set(known)
            return whole and all(fits(each, known[name]) for name, each in value.items())
        case list():
            return all(fits(each, schema["items"]) for each in value)
    names = {str: "string", int: "integer", bool: "boolean", dict: "object", type(None): "null"}
    types = schema["type"]
    return names[type(value)] in ([types] if isinstance(types, str) else types)


@pytest.mark.spec("M5")
def test_results_are_as_the_schemas_promise(team: Team) -> None:
    tools = {tool.name: tool for tool in mission_tools(lambda: team.todos)}
    template: dict[str, Any] = {"missionSlug": SLUG, "pillarSlug": BUILD, "template": "profiling", "title": "A"}
    calls: list[tuple[str, MissionScope, dict[str, Any]]] = [
        ("create", team.lead, {**template, "alsoAffects": [ONBOARDING], "deadline": "2020-01-01"}),
        ("update", team.lead, {"action": "start", "reason": "now"}),
        ("report", team.owner, {"result": "It is fast."}),
        ("complete", team.lead, {"outcome": "fast", "overrideReason": "the tests are slow"}),
        ("list", team.lead, {"limit": 1, "status": "all"}),
    ]
    todo_id = ""
    for name, scope, arguments in calls:
        tool = tools[f"mission_todo_{name}"]
        ids = {"todoId": todo_id} if "todoId" in tool.input_schema["properties"] else {}
        sent = {"missionSlug": SLUG, **ids, **arguments}
        assert fits(sent, tool.input_schema)
        result = tool.run(scope, sent)
        assert fits(result.data, tool.output_schema)
        assert json.loads(result.text) == result.data
        todo_id = result.data.get("id", todo_id)


@pytest.mark.spec("M4", "M5", "M6")
def test_each_role_is_offered_its_tools_and_only_the_lead_and_people_the_one_that_completes(team: Team) -> None:
    offered = {
        role: [
            tool.name.removeprefix("mission_todo_") for tool in mission_tools(lambda: team.todos) if role in tool.roles
        ]
        for role in Role
    }
    assert offered == {
        Role.PERSON: ["create", "update", "complete", "list"],
        Role.LEAD: ["create", "update", "complete", "list"],
        Role.OWNER: ["create", "update", "list", "report"],
        Role.WORKER: [],
        Role.SUPERVISOR: [],
        Role.SYSTEM: [],
        Role.VIEWER: ["list"],
    }


@pytest.mark.spec("M4", "M6")
def test_a_tool_that_somebody_calls_though_it_was_not_offered_is_refused(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS, check={"name": "tests"})
    ran: list[str] = []

    class Spy:
        def run(self, scope: MissionScope, todo: MissionTodo) -> None:
            ran.append(f"{todo.id} by {scope.actor}")

    spied = replace(team, checks=Spy())
    forged = [{"role": "lead"}, {"actor": "person:ada"}]
    with nothing_changes(store):
        for scope in (team.owner, team.worker):
            with pytest.raises(NotAllowed, match="may not complete a mission todo"):
                spied.call(scope, "complete", todoId=todo.id, outcome="mine")
            for lie in forged:
                with pytest.raises(InvalidInput, match="there is no such field"):
                    spied.call(scope, "complete", todoId=todo.id, outcome="mine", **lie)
        with pytest.raises(NotAllowed):
            team.call(team.worker, "create", pillarSlug=BUILD, title="A")
        with pytest.raises(NotAllowed):
            team.call(team.lead, "report", todoId=todo.id, result="done")
    assert ran == []


@pytest.mark.spec("M4")
def test_whoever_is_bound_to_a_mission_does_not_read_another(store: Store, team: Team) -> None:
    other = developer_experience(store, "another-mission")
    with pytest.raises(NotAllowed, match="You act in mission 'developer-experience' only"):
        other.call(team.owner, "list")
    assert other.call(team.person, "list")["items"] == []


@pytest.mark.spec("M16")
def test_completion_has_the_check_run_first_if_it_has_not_passed_since_the_last_work(
    team: Team, clock: StoppedClock
) -> None:
    ran: list[bool] = []

    class Checks:
        passes = False

        def run(self, scope: MissionScope, todo: MissionTodo) -> None:
            ran.append(self.passes)
            team.todos.record_check(scope, todo.id, self.passes, "3 failed")

    checks = Checks()
    checking = replace(team, checks=checks)
    todo, plain = team.todo_in(TodoStatus.IN_PROGRESS, check={"name": "tests"}), team.todo_in(TodoStatus.IN_PROGRESS)
    checking.call(team.lead, "complete", todoId=plain.id, outcome="done")
    assert ran == []
    with pytest.raises(IllegalTransition, match=r"its check failed at .*: 3 failed"):
        checking.call(team.lead, "complete", todoId=todo.id, outcome="done")
    clock.advance(seconds=1)
    team.call(team.owner, "report", todoId=todo.id, result="now they pass")
    checks.passes = True
    done = checking.call(team.lead, "complete", todoId=todo.id, outcome="done")
    assert ran == [False, True]
    assert done["check"] == {"name": "tests"}
    assert done["checkResult"] == {"passed": True, "detail": "3 failed", "at": "2026-02-21T09:00:01.000000Z"}


@pytest.mark.spec("M5")
def test_every_problem_of_a_new_todo_is_named_with_its_field(team: Team) -> None:
    assert problems(
        team,
        "create",
        missionSlug=5,
        title="a\nb",
        description=["x"],
        justification="x" * 20_001,
        completionCriteria="\x07",
        priority="urgent",
        targetStatus="completed",
        alsoAffects="all",
        check={"name": 5},
    ) == [
        "missionSlug: must be text, got a number",
        "pillarSlug: is required; a pillar of the mission",
        "title: must not contain a line break (U+000A) (at character 2)",
        "description: must be text, got an array",
        "justification: must be 0 to 20000 characters after trimming, got 20001",
        "completionCriteria: must not contain control characters (U+0007) (at character 1)",
        "priority: must be one of critical, high, medium, low, got 'urgent'",
        "targetStatus: must be one of pending, backlog, got 'completed'",
        "alsoAffects: must be an array of at most 100 slugs, got text",
        "check.name: must be text, got a number",
    ]
    assert problems(team, "create", pillarSlug=BUILD) == ["title: is required; say in one line what to do"]
    assert problems(team, "create", pillarSlug=BUILD, title="A", deadline="tomorrow")[0].startswith(
        "deadline: 'tomorrow'"
    )


@pytest.mark.spec("M5")
def test_a_field_that_there_is_not_is_refused_with_the_one_that_was_meant(team: Team) -> None:
    for name, hint in [
        ("completion_criteria", "Did you mean completionCriteria?"),
        ("dueDate", "Known fields: missionSlug, pillarSlug"),
        ("x\x1b[2J" * 100, "Known fields: missionSlug"),
    ]:
        (problem,) = problems(team, "create", None, pillarSlug=BUILD, title="A", **{name: "x"})
        assert f"there is no such field. {hint}" in problem
        assert problem.isprintable()


@pytest.mark.spec("M5")
def test_names_of_what_is_not_there_come_with_what_is_near(team: Team) -> None:
    person, todo = team.person, team.create()
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: team.call(person, "list", missionSlug="developer-experiences"), "Did you mean developer-experience?"),
        (
            lambda: team.call(person, "create", pillarSlug="build", title="A"),
            "has no pillar 'build'.*Available: build-",
        ),
        (lambda: team.call(person, "list", pillarSlug="onboardin"), "Did you mean onboarding?"),
        (lambda: team.call(person, "update", todoId="x", action="cancel", reason="y"), "mission_todo_list for the ids"),
    ]
    for call, words in calls:
        with nothing_changes(team.store), pytest.raises(NotFound, match=words):
            call()
    assert problems(team, "create", pillarSlug=BUILD, title="A", template="profile", alsoAffects=["on-boarding"]) == [
        "template: mission 'developer-experience' has no template 'profile'. "
        "Did you mean profiling? Available: profiling.",
        "alsoAffects[0]: mission 'developer-experience' has no pillar 'on-boarding'. "
        "Did you mean onboarding? Available: build-performance, onboarding.",
    ]
    assert problems(team, "update", todoId=todo.id, action="finish") == [
        f"action: must be one of {', '.join(ACTIONS)}, got 'finish'",
        "reason: is required; say why",
    ]


NO_CHECKS: Final[list[tuple[Any, str]]] = [
    ("tests", "check: must be {"),
    ({}, "check: must be {"),
    ({"name": "tests", "metric": "x"}, "check: must be {"),
    ({"metric": "local-build-time"}, "check: must be {"),
    ({"metric": "local-build-time", "atMost": "60"}, "check.atMost: must be a number, got '60'"),
    ({"metric": "local-build-time", "atMost": float("nan")}, "check.atMost: must be a number, got nan"),
    ({"metric": "local-build-time", "atLeast": True}, "check.atLeast: must be a number, got a boolean"),
    ({"metric": "build-time", "atMost": 60}, "check.metric: mission 'developer-experience' has no metric"),
    ({"name": "test"}, "check.name: mission 'developer-experience' has no check 'test'. Did you mean tests?"),
    ({"command": []}, "check.command: must be an array of 1 to 100 words"),
    ({"command": [5]}, "check.command[0]: must be text, got a number"),
]


@pytest.mark.spec("M5", "M16")
def test_a_check_that_is_none_is_refused(team: Team) -> None:
    for check, problem in NO_CHECKS:
        (found,) = problems(team, "create", team.person, pillarSlug=BUILD, title="A", check=check)
        assert found.startswith(problem)


@pytest.mark.spec("M16")
def test_only_a_person_gives_a_todo_a_command_of_its_own(store: Store, team: Team) -> None:
    arguments = {"pillarSlug": BUILD, "title": "A", "check": {"command": ["make", "test"]}}
    with nothing_changes(store):
        for scope in (team.lead, team.owner):
            with pytest.raises(NotAllowed, match=r"check\.command: only a person"):
                team.call(scope, "create", **arguments)
    assert team.call(team.person, "create", **arguments)["check"] == {"command": ["make", "test"]}


@pytest.mark.spec("M14")
def test_a_template_fills_what_is_left_out(team: Team) -> None:
    made = team.call(team.lead, "create", pillarSlug=BUILD, template="profiling", description="Of the tests.")
    said = ("title", "description", "justification", "completionCriteria", "priority", "check")
    assert [made[name] for name in said] == [
        "Profile it",
        "Of the tests.",
        "Nobody knows what is slow.",
        "The three slowest parts are known.",
        "high",
        {"name": "tests"},
    ]
    named = team.call(team.lead, "create", pillarSlug=BUILD, template="profiling", title="B", priority="low")
    assert (named["title"], named["priority"]) == ("B", "low")


@pytest.mark.spec("M14")
def test_a_todo_belongs_to_one_pillar_and_may_also_affect_others(team: Team) -> None:
    made = team.call(team.lead, "create", pillarSlug=BUILD, title="A", alsoAffects=[ONBOARDING, BUILD, ONBOARDING])
    assert made["alsoAffects"] == [ONBOARDING]
    assert made["pillarId"] == team.pillars[BUILD].id


@pytest.mark.spec("M13")
def test_a_deadline_in_the_past_is_a_warning_that_does_not_hide_another(store: Store) -> None:
    team = developer_experience(store, active=1)
    team.create()
    made = team.call(team.lead, "create", pillarSlug=BUILD, title="A", deadline="2026-02-20")
    assert made["warning"] == (
        "Active TODO limit (1) reached. Created in backlog instead. The deadline 2026-02-20 has already passed."
    )


@pytest.mark.spec("M5")
def test_the_same_request_makes_one_todo_however_often_it_comes(store: Store, team: Team) -> None:
    first = team.call(team.lead, "create", **PROFILE, requestId="r-1")
    with nothing_changes(store):
        for _ in range(10):
            again = team.call(team.lead, "create", **PROFILE, requestId="r-1")
            assert again.pop("warning") == "Request 'r-1' was made before; this is the todo it created."
            assert again == first
    # Whatever has become of it meanwhile.
    todo = team.todos.get(first["id"])
    team.update(todo, TodoAction.EXTEND, deadline="2026-06-01")
    team.update(todo, TodoAction.CANCEL)
    with nothing_changes(store):
        again = team.call(team.lead, "create", **PROFILE, requestId="r-1")
        assert (again["id"], again["status"]) == (first["id"], "cancelled")
        for name, other in [
            ("title", "Another"),
            ("priority", "low"),
            ("deadline", "2026-06-01"),
            ("targetStatus", "backlog"),
            ("pillarSlug", ONBOARDING),
        ]:
            with pytest.raises(Conflict, match="'r-1' already created another todo, “Profile webpack"):
                team.call(team.lead, "create", **{**PROFILE, name: other}, requestId="r-1")
    assert team.call(team.lead, "create", **PROFILE, requestId="r-2")["id"] != first["id"]


@pytest.mark.spec("M5")
def test_a_request_that_is_repeated_uses_no_slot_though_all_are_taken(store: Store) -> None:
    team = developer_experience(store, active=1, backlog=1)
    first = team.call(team.lead, "create", pillarSlug=BUILD, title="A", requestId="r")
    team.create("B", target=TodoStatus.BACKLOG)
    assert team.call(team.lead, "create", pillarSlug=BUILD, title="A", requestId="r")["id"] == first["id"]


@pytest.mark.soak
@pytest.mark.spec("M5")
def test_a_request_repeated_a_thousand_times_changes_nothing_twice(store: Store, team: Team) -> None:
    team.call(team.lead, "create", **PROFILE, requestId="r-1")
    with nothing_changes(store):
        for _ in range(1_000):
            team.call(team.lead, "create", **PROFILE, requestId="r-1")


@pytest.mark.spec("W10", "M5")
def test_hostile_text_in_any_field_of_a_new_todo_is_stored_exactly_or_refused(store: Store) -> None:
    team = developer_experience(store, active=1_000)
    column = {
        "title": "title",
        "description": "description",
        "justification": "justification",
        "completionCriteria": "completionCriteria",
        "assignedAgent": "assignedAgent",
    }

    def send(field: str, text: str) -> str:
        made = team.call(team.person, "create", **{"pillarSlug": BUILD, "title": "A", field: text})
        stored: str = made[column[field]] or ""
        assert team.todos.get(made["id"]).title in (made["title"], text.strip())
        return stored

    assert by_field(store, send, *column) == {}


@pytest.mark.spec("W10", "M5")
def test_hostile_text_where_a_name_is_wanted_is_refused_in_words(store: Store, team: Team) -> None:
    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    sent: dict[str, tuple[str, dict[str, Any]]] = {
        "missionSlug": ("list", {}),
        "pillarSlug": ("list", {}),
        "cursor": ("list", {}),
        "status": ("list", {}),
        "limit": ("list", {}),
        "todoId": ("complete", {"outcome": "done"}),
        "action": ("update", {"todoId": todo.id, "reason": "x"}),
        "deadline": ("update", {"todoId": todo.id, "action": "extend", "reason": "x"}),
        "template": ("create", {"pillarSlug": BUILD}),
        "alsoAffects": ("create", {"pillarSlug": BUILD, "title": "A"}),
        "metricsImpacted": ("complete", {"todoId": todo.id, "outcome": "done"}),
    }

    with nothing_changes(store):
        for text in HOSTILE.values():
            for field, (tool, arguments) in sent.items():
                value = [text] if field in ("metricsImpacted", "alsoAffects") else text
                with pytest.raises((InvalidInput, NotFound)) as refused:
                    team.call(team.person, tool, **{**arguments, field: value})
                assert len(str(refused.value)) < 1_000


@pytest.mark.spec("W10", "M5")
def test_hostile_text_in_reasons_outcomes_and_results_is_stored_exactly_or_refused(store: Store) -> None:
    team = developer_experience(store, active=1_000)

    def result(text: str) -> str:
        team.call(team.owner, "report", todoId=todo.id, result=text)
        stored: str = max(everything(store)["messages"], key=lambda row: (row[1] == chat, row[3]))[6]
        return unquote(stored.removeprefix(f"[TODO {todo.id}]\n"))

    todo = team.todo_in(TodoStatus.IN_PROGRESS)
    chat = team.pillars[BUILD].todo_conversation_id
    assert failures(store, result) == {}
    waiting = [team.todo_in(TodoStatus.IN_PROGRESS).id for _ in range(60)]

    def prepared(text: str) -> str:
        stored: str = team.call(team.person, "complete", todoId=waiting[-1], outcome=text)["outcome"]
        waiting.pop()
        return stored

    assert failures(store, prepared) == {}

    def cancelled(text: str) -> str:
        team.call(team.person, "update", todoId=waiting[-1], action="cancel", reason=text)
        waiting.pop()
        return next(event.reason for event in reversed(team.trail()) if event.action == "cancel")

    assert failures(store, cancelled) == {}
