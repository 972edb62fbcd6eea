"""The tools of mission members that change no todo: `mission_read`, and `mission_control` for the Lead (M11)."""

from __future__ import annotations

from typing import Final

from punchlist.app import Services
from punchlist.errors import InvalidInput, NotFound
from punchlist.kernel.camel_json import camel_json
from punchlist.kernel.events import Role
from punchlist.kernel.text import excerpt
from punchlist.kernel.tool import Arguments, ListToolSpec, Schema, ToolResult, json_result, schema
from punchlist.missions.model import TEAM, MissionScope
from punchlist.missions.todos.tool_arguments import FieldReader
from punchlist.missions.todos.tools import REVIEWERS
from punchlist.missions.todos.validation import MAX_REASON_LENGTH, check_mission
from punchlist.runs.model import Run
from punchlist.surfaces.member_views import DEFAULT_LIMIT, MAX_LIMIT, WHAT, MemberQuery, MemberViews

_STRING: Final[Schema] = {"type": "string"}
_OBJECT: Final[Schema] = {"type": "object"}
_RUN_ACTIONS: Final = ("pause", "resume", "redirect", "stop")
_CONTROLS: Final = {name: name for name in (*_RUN_ACTIONS, "add_strategy", "retire_strategy")}
_MAX_MESSAGE_LENGTH: Final = 20_000


def member_tools(services: Services) -> list[ListToolSpec[MissionScope]]:
    return [_read(services), _control(services)]


def _read(services: Services) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        return json_result(MemberViews(services, scope).read(parse_query(args)))

    return ListToolSpec(
        name="mission_read",
        title="Read about a mission",
        description=(
            "Your missions; a todo with its sub-items, links, comments, files, reports and feedback; the end of a chat "
            "(of the mission, a pillar, or a todo's work); the Lead's feedback on work in progress; and more."
        ),
        input_schema=schema(
            ["what"],
            what={"type": "string", "enum": list(WHAT)},
            missionSlug=_STRING,
            pillarSlug=_STRING,
            todoId=_STRING,
            limit={"type": "integer"},
        ),
        output_schema=_OBJECT,
        roles=TEAM | {Role.VIEWER},
        read_only=True,
        run=run,
        idempotent=True,
    )


def parse_query(args: Arguments) -> MemberQuery:
    reader = FieldReader(args)
    query = MemberQuery(
        reader.choice("what", {name: name for name in WHAT}) or "",
        reader.line("missionSlug"),
        reader.line("pillarSlug"),
        reader.line("todoId"),
        reader.number("limit", default=DEFAULT_LIMIT, maximum=MAX_LIMIT),
    )
    if not reader.given("what"):
        reader.problems.append(f"what: is required; one of {', '.join(WHAT)}")
    reader.finish()
    return query


def _control(services: Services) -> ListToolSpec[MissionScope]:
    def run(scope: MissionScope, args: Arguments) -> ToolResult:
        reader = FieldReader(args)
        slug = reader.line("missionSlug", required="the slug of a mission") or ""
        action = reader.choice("action", _CONTROLS)
        reason = reader.block("reason", max_length=MAX_REASON_LENGTH, required="say why") or ""
        run_id, pillar = reader.line("runId"), reader.line("pillarSlug")
        text = reader.block("text", max_length=_MAX_MESSAGE_LENGTH)
        if not reader.given("action"):
            reader.problems.append(f"action: is required; one of {', '.join(_CONTROLS)}")
        needed = {"runId": action in _RUN_ACTIONS, "pillarSlug": action not in (None, *_RUN_ACTIONS)}
        needed["text"] = action is not None and action not in ("pause", "resume", "stop")
        reader.problems += [
            f"{name}: is required to {action}" for name, wanted in needed.items() if wanted and not reader.given(name)
        ]
        reader.finish()
        check_mission(scope, slug)
        if action in _RUN_ACTIONS:
            after = _control_run(services, scope, slug, str(action), run_id or "", text or "", reason)
            return json_result(camel_json(after, "id", "status", "wish", "why", "todo_id"))
        change = services.strategies.add if action == "add_strategy" else services.strategies.retire
        strategy = change(scope, slug, pillar or "", text or "", reason)
        return json_result(camel_json(strategy, "id", "description", "status"))

    return ListToolSpec(
        name="mission_control",
        title="Control runs and strategies",
        description=(
            "pause, resume, stop or redirect (text: a message to its agent) a run; add_strategy or retire_strategy "
            "(text) of a pillar."
        ),
        input_schema=schema(
            ["missionSlug", "action", "reason"],
            missionSlug=_STRING,
            action={"type": "string", "enum": list(_CONTROLS)},
            reason=_STRING,
            runId={"type": "string", "description": "From mission_read"},
            pillarSlug=_STRING,
            text=_STRING,
        ),
        output_schema=_OBJECT,
        roles=REVIEWERS,
        read_only=False,
        run=run,
    )


def _control_run(
    services: Services, scope: MissionScope, slug: str, action: str, run_id: str, text: str, reason: str
) -> Run:
    runs, mission = services.runs, services.missions.get(slug)
    found = runs.find(run_id)
    if found.mission_id != mission.id:
        raise NotFound(f"Mission {slug!r} has no run {excerpt(run_id)!r}. mission_read lists its runs.")
    match action:
        case "pause":
            return runs.pause(scope, found.id, reason)
        case "resume":
            return runs.resume(scope, found.id, reason)
        case "redirect":
            return runs.redirect(scope, found.id, text)
        case "stop":
            return runs.stop(scope, found.id, reason)
    raise InvalidInput(f"action: {action!r} is not about a run")
