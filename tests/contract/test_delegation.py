"""Workers: several in a turn, what their failures mean for the plan, how deep it goes, and those of one's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.rehearsing import Rehearse, Rehearsing, calls, completes, every_call_has_one_result, plans, says
from tests.contract.test_context import looks

from punchlist.agent.agents_config import load_agents
from punchlist.agent.continuation import Limits, Reason
from punchlist.agent.definitions import BUILT_IN, SUPERVISOR_TOOLS, AgentDefinition
from punchlist.agent.turn_model import TurnResult
from punchlist.config import load
from punchlist.conversations.model import TurnScope
from punchlist.kernel.events import Actor, Role
from punchlist.models.model import CallReturn, FinishReason, Model, UserText
from punchlist.models.rehearsal import RehearsedReply
from punchlist.plan.lifecycle import PlanStatus
from punchlist.plan.model import TurnTodo
from punchlist.trust import Trust

TODO = "{{ created[0].id }}"
IDLE = "\n\n(It made no successful tool call.)"


def mission(type: str, text: str = "Do it.", **more: Any) -> tuple[str, dict[str, Any]]:
    return "delegate", {"type": type, "mission": text, **more}


def reports(scene: Rehearsing) -> list[CallReturn]:
    found = [message for message in scene.asked[-1].messages if isinstance(message, CallReturn)]
    return [message for message in found if message.tool == "delegate"]


def plan_of(scene: Rehearsing, outcome: TurnResult) -> list[TurnTodo]:
    here = TurnScope("s", scene.runtime.site.scope.actor, outcome.turn_id)
    return list(scene.runtime.plans.list(here, frozenset(PlanStatus)).items)


@pytest.mark.spec("T12")
def test_several_workers_at_once_and_after_each_other_report_to_the_same_turn(rehearse: Rehearse) -> None:
    scene = rehearse(
        calls(mission("researcher", "Find it."), mission("writer", "Describe it.")),
        calls(mission("coder", "Change it.")),
        calls(mission("coder", "Change it again.")),
        says("All three have reported."),
        researcher=[*looks(1), says("It is in x.")],
        writer=[says("It is described.")],
        coder=[says("It is changed.")],
    )
    outcome = scene.run()
    assert (outcome.reason, outcome.iterations) == (Reason.COMPLETED, 4)
    told = [
        'It is in x.\n\nWhat it did (1 successful calls):\n- find_files: {"pattern":"0-0-0"}',
        f"It is described.{IDLE}",
        f"It is changed.{IDLE}",
        f"It is changed.{IDLE}",
    ]
    assert [report.text for report in reports(scene)] == told
    assert every_call_has_one_result(scene.asked[-1].messages)
    turns = scene.runtime.conversations.turns("s")
    workers = sorted(turn.agent_id for turn in turns if turn.parent_turn_id == outcome.turn_id)
    assert workers == ["coder", "coder", "researcher", "writer"]
    assert all(str(turn.end_reason).startswith("completed: ") for turn in turns)
    # Each begins with its own mission, and nothing else that was said.
    assert [request.messages[0] for request in scene.model.requests["coder"]] == [
        UserText("Change it."),
        UserText("Change it again."),
    ]


FAILURES: list[tuple[RehearsedReply, str]] = [
    (RehearsedReply(fault="unauthorized"), "Ended as error: The key is wrong."),
    (says("and the", finish=FinishReason.LENGTH), "Ended as error: the model's reply reached the length limit"),
    (looks(1)[0], "Ended as capped: limit of 1 iteration reached."),
]


@pytest.mark.spec("T12")
@pytest.mark.parametrize(("line", "told"), FAILURES, ids=["refused", "cut off", "capped"])
def test_a_worker_that_does_not_finish_is_a_result_and_the_turn_goes_on(
    rehearse: Rehearse, line: RehearsedReply, told: str
) -> None:
    scene = rehearse(
        calls(mission("writer"), mission("researcher")), says("One of two."), writer=[line], researcher=[says("Yes.")]
    )
    writer = replace(BUILT_IN["writer"], limits=Limits(base_iterations=1, max_iterations=1))
    scene.runtime = replace(scene.runtime, agents={**BUILT_IN, "writer": writer})
    assert scene.run().reason is Reason.COMPLETED
    failed, done = reports(scene)
    assert (failed.failed, done.failed, done.text) == (True, False, f"Yes.{IDLE}")
    assert failed.text.startswith("The writer did not finish. ")
    assert told in failed.text


@pytest.mark.spec("C8", "T12", "T5")
def test_a_task_whose_worker_fails_is_back_on_the_list_once_and_then_skipped(rehearse: Rehearse) -> None:
    scene = rehearse(
        plans("Build", "Write"),
        calls(mission("coder", todoId=TODO)),
        calls(("list_todo", {"status": "all"})),
        calls(mission("coder", "Do it in another way.", todoId=TODO)),
        completes(1),
        says("Built nothing, wrote all."),
        coder=[RehearsedReply(fault="bad_request")],
    )
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    first, second = reports(scene)
    assert "The task is pending again: try it once more" in first.text
    assert "This was the second attempt, so the task is skipped. Continue with the rest." in second.text
    listed = next(message for message in scene.asked[3].messages[::-1] if isinstance(message, CallReturn))
    assert '"pending":2' in listed.text.replace(" ", "")
    build, write = plan_of(scene, outcome)
    assert (build.status, write.status) == (PlanStatus.CANCELLED, PlanStatus.COMPLETED)
    assert build.outcome == "Skipped after two attempts: error: The request is not valid."


@pytest.mark.spec("C8", "T5")
def test_a_task_whose_second_worker_succeeds_is_the_supervisors_to_complete(rehearse: Rehearse) -> None:
    scene = rehearse(
        plans("Build"),
        calls(mission("coder", todoId=TODO)),
        calls(mission("writer", todoId=TODO)),
        completes(0),
        says("Built."),
        coder=[RehearsedReply(fault="bad_request")],
        writer=[says("Built it.")],
    )
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    assert [report.failed for report in reports(scene)] == [True, False]
    (build,) = plan_of(scene, outcome)
    assert (build.status, build.outcome) == (PlanStatus.COMPLETED, "done")


@pytest.mark.spec("T13")
@pytest.mark.parametrize("worker", ["researcher", "writer"])
def test_a_worker_has_no_plan_tools_and_what_it_tries_is_refused(rehearse: Rehearse, worker: str) -> None:
    tries = calls(("create_todo", {"items": [{"title": "Mine"}]}), ("delegate", {"type": "coder", "mission": "You."}))
    scene = rehearse(calls(mission(worker)), says("Done."), **{worker: [tries, says("I could not plan.")]})
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    first, last = scene.model.requests[worker]
    assert not {tool.name for tool in first.tools} & set(SUPERVISOR_TOOLS)
    assert "## Your plan" not in first.system
    refused = [message for message in last.messages if isinstance(message, CallReturn)]
    assert [message.text.partition(".")[0] for message in refused] == [
        "There is no tool 'create_todo'",
        "There is no tool 'delegate'",
    ]
    assert plan_of(scene, outcome) == []
    assert len(scene.runtime.conversations.turns("s")) == 2


@pytest.mark.spec("T13", "T10")
def test_a_todo_driven_worker_keeps_a_list_of_its_own_and_is_sent_back_to_it(rehearse: Rehearse) -> None:
    scene = rehearse(
        plans("Build"),
        calls(mission("coder", "Build it.", todoId=TODO)),
        completes(0),
        says("Built."),
        coder=[
            plans("Part A", "Part B"),
            completes(0),
            says("Soon."),
            completes(1),
            calls(("delegate", {"type": "writer", "mission": "You."}), ("list_todo", {}), ("wait_todo", {})),
            says("Both parts are built."),
        ],
    )
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    first, *_, last = scene.model.requests["coder"]
    assert {tool.name for tool in first.tools} & {*SUPERVISOR_TOOLS, "TodoWrite"} == {
        "create_todo",
        "start_todo",
        "complete_todo",
    }
    told = [message.text for message in last.messages if isinstance(message, UserText)]
    assert any("1 item is still open" in text and "“Part B”" in text for text in told)
    refused = [message.text.partition(".")[0] for message in last.messages if isinstance(message, CallReturn)][-3:]
    assert refused == [f"There is no tool '{name}'" for name in ("delegate", "list_todo", "wait_todo")]
    # The supervisor's plan has only its own item, which the worker has not seen as a list of its own.
    assert [todo.title for todo in plan_of(scene, outcome)] == ["Build"]
    (worker,) = [turn for turn in scene.runtime.conversations.turns("s") if turn.agent_id == "coder"]
    own = TurnScope("s", scene.runtime.site.scope.actor, worker.id)
    parts = scene.runtime.plans.list(own, frozenset(PlanStatus)).items
    assert [(todo.title, todo.status) for todo in parts] == [
        ("Part A", PlanStatus.COMPLETED),
        ("Part B", PlanStatus.COMPLETED),
    ]


@pytest.mark.spec("T13", "C13")
def test_a_worker_that_leaves_its_own_list_open_has_not_finished(rehearse: Rehearse) -> None:
    scene = rehearse(
        plans("Build"),
        calls(mission("coder", todoId=TODO)),
        calls(("complete_todo", {"todoId": TODO, "outcome": "no", "status": "cancelled"})),
        says("Not built."),
        coder=[plans("Part A"), *[says("Soon.")] * 9],
    )
    assert scene.run().reason is Reason.COMPLETED
    (report,) = reports(scene)
    assert report.failed
    assert "Ended as stalled" in report.text
    assert "- Part A" in report.text


@pytest.mark.spec("T12")
@pytest.mark.parametrize("reference", ["1", TODO], ids=["number", "id"])
def test_a_worker_is_told_the_context_criteria_and_check_of_its_item(rehearse: Rehearse, reference: str) -> None:
    item = {
        "title": "Build",
        "context": "The sources are in src.",
        "completionCriteria": "It starts.",
        "check": {"command": "true"},
    }
    scene = rehearse(
        calls(("create_todo", {"items": [item, {"title": "Write"}]})),
        calls(("start_todo", {"todoId": "2"})),
        calls(mission("researcher", "Build it.", todoId=reference)),
        completes(0),
        completes(1),
        says("Built."),
        researcher=[says("Built.")],
    )
    assert scene.run().reason is Reason.COMPLETED
    assert [report.failed for report in reports(scene)] == [False]
    (asked,) = scene.model.requests["researcher"]
    assert asked.messages[0] == UserText(
        "Build it.\n\nItem: Build\nContext: The sources are in src.\nDone when: It starts.\nCheck: true"
    )


# --- of one's own -----------------------------------------------------------------------------------------

LEAD = '[agents.lead]\nprompt = "You lead."\ndelegates = true\n'


def configured(
    rehearse: Rehearse, tmp_path: Path, text: str, *lines: RehearsedReply, **workers: list[RehearsedReply]
) -> Rehearsing:
    """An agent with the workers of a project's file that somebody has trusted."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "punchlist.toml").write_text(text)
    trust = Trust(tmp_path / "trust")
    trust.trust(project / "punchlist.toml")
    found = load_agents(load(environment={"HOME": str(tmp_path)}, cwd=project), trust)
    scene = rehearse(*lines, **workers)
    scene.agent = found.get("supervisor")
    scene.runtime = replace(scene.runtime, agents=found.definitions)
    return scene


@pytest.mark.spec("T13")
def test_a_worker_of_a_file_has_its_own_prompt_model_and_tools(rehearse: Rehearse, tmp_path: Path) -> None:
    text = '[agents.reviewer]\nprompt = "You review."\ntools = ["read_*"]\nmodel = "rehearsal:r"\n'
    text += 'description = "finds what is wrong"\n'
    writes = calls(("write_file", {"path": "x", "content": "x"}))
    scene = configured(
        rehearse, tmp_path, text, calls(mission("reviewer")), says("Done."), reviewer=[writes, says("It is fine.")]
    )
    cast: dict[str, str | None] = {}

    def model_for(agent: AgentDefinition) -> Model:
        cast[agent.name] = agent.model
        return scene.model.for_agent(agent.name)

    scene.runtime = replace(scene.runtime, model_for=model_for)
    assert scene.run().reason is Reason.COMPLETED
    assert cast == {"supervisor": None, "reviewer": "rehearsal:r"}
    assert "- reviewer: finds what is wrong" in scene.asked[0].system
    first, last = scene.model.requests["reviewer"]
    assert first.system.startswith("You review.\n")
    assert [tool.name for tool in first.tools] == ["read_file"]
    assert "There is no tool 'write_file'" in repr(last.messages)
    assert [report.text for report in reports(scene)] == [f"It is fine.{IDLE}"]


@pytest.mark.spec("T12")
@pytest.mark.parametrize(("depth", "workers"), [(1, ["lead"]), (2, ["coder", "lead"])])
def test_how_deep_delegation_goes_is_set_by_the_one_who_begins(
    rehearse: Rehearse, tmp_path: Path, depth: int, workers: list[str]
) -> None:
    text = f"[agents.supervisor]\ndelegation_depth = {depth}\n{LEAD}delegation_depth = 9\n"
    scene = configured(
        rehearse,
        tmp_path,
        text,
        calls(mission("lead")),
        says("Done."),
        lead=[calls(mission("coder")), says("Led.")],
        coder=[calls(mission("lead")), says("Coded.")],
    )
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    # Delegating to a worker that does nothing is no work.
    assert [report.text for report in reports(scene)] == [f"Led.{IDLE}"]
    turns = {turn.agent_id: turn for turn in scene.runtime.conversations.turns("s")}
    assert sorted(name for name in turns if name != "supervisor") == workers
    asked = scene.model.requests
    assert ("delegate" in [tool.name for tool in asked["lead"][0].tools]) == (depth == 2)
    if depth == 1:
        assert "There is no tool 'delegate'" in repr(asked["lead"][-1].messages)
    else:
        assert turns["coder"].parent_turn_id == turns["lead"].id
        assert "There is no tool 'delegate'" in repr(asked["coder"][-1].messages)


@pytest.mark.spec("T12")
def test_nobody_delegates_to_itself_or_to_the_supervisor(rehearse: Rehearse, tmp_path: Path) -> None:
    text = f"[agents.supervisor]\ndelegation_depth = 3\n{LEAD}"
    scene = configured(
        rehearse,
        tmp_path,
        text,
        calls(mission("lead"), mission("supervisor")),
        says("Done."),
        lead=[calls(mission("lead")), says("Alone, then.")],
    )
    assert scene.run().reason is Reason.COMPLETED
    led, refused = reports(scene)
    assert (led.text, refused.failed) == (f"Alone, then.{IDLE}", True)
    assert "type: " in refused.text
    assert len(scene.runtime.conversations.turns("s")) == 2


@pytest.mark.spec("T5", "T12", "S6")
def test_two_delegations_of_one_reply_run_one_after_the_other_each_with_its_task_in_progress(
    rehearse: Rehearse,
) -> None:
    second = "{{ created[1].id }}"
    scene = rehearse(
        plans("Find", "Write"),
        calls(mission("researcher", "Find it.", todoId=TODO), mission("writer", "Write it.", todoId=second)),
        calls(("list_todo", {})),
        completes(0),
        completes(1),
        says("Done."),
        researcher=[*looks(2), says("It is in x.")],
        writer=[*looks(2), says("It is written.")],
    )
    seen: list[tuple[str, list[tuple[str, str | None]]]] = []

    def on_event(event: Any) -> None:
        if type(event).__name__ in ("TurnStarted", "TurnEnded") and event.agent in ("researcher", "writer"):
            (main,) = [turn for turn in scene.runtime.conversations.turns("s") if turn.parent_turn_id is None]
            here = TurnScope("s", scene.runtime.site.scope.actor, main.id)
            todos = scene.runtime.plans.list(here, frozenset(PlanStatus)).items
            moment = f"{type(event).__name__} {event.agent}"
            seen.append((moment, [(todo.status.value, todo.outcome) for todo in todos]))

    scene.runtime = replace(scene.runtime, on_event=on_event)
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    report = "It is in x.\n\nWhat it did (2 successful calls):\n" + "\n".join(
        f'- find_files: {{"pattern":"0-{n}-0"}}' for n in range(2)
    )
    working, waiting, reported = ("in_progress", None), ("pending", None), ("pending", report)
    assert seen == [
        ("TurnStarted researcher", [working, waiting]),
        ("TurnEnded researcher", [working, waiting]),
        ("TurnStarted writer", [reported, working]),
        ("TurnEnded writer", [reported, working]),
    ]
    state = str(scene.asked[2].messages[-1])
    assert "its worker has reported: It is in x." in state
    assert [todo.outcome for todo in plan_of(scene, outcome)] == ["done", "done"]


@pytest.mark.spec("T12", "T5")
def test_a_task_that_a_person_ended_while_its_worker_ran_keeps_its_outcome(rehearse: Rehearse) -> None:
    scene = rehearse(
        plans("Find"),
        calls(mission("researcher", todoId=TODO)),
        says("Done."),
        researcher=[says("Found.")],
    )

    def on_event(event: Any) -> None:
        if type(event).__name__ == "TurnStarted" and event.agent == "researcher":
            (main,) = [turn for turn in scene.runtime.conversations.turns("s") if turn.parent_turn_id is None]
            here = TurnScope("s", Actor(Role.PERSON, "ann"), main.id)
            (todo,) = scene.runtime.plans.list(here).items
            scene.runtime.plans.end(here, todo.id, "Not needed.")

    scene.runtime = replace(scene.runtime, on_event=on_event)
    outcome = scene.run()
    assert outcome.reason is Reason.COMPLETED
    assert [(todo.status, todo.outcome) for todo in plan_of(scene, outcome)] == [(PlanStatus.COMPLETED, "Not needed.")]
    assert [report.text for report in reports(scene)] == [f"Found.{IDLE}"]
