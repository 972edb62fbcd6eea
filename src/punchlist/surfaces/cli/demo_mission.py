"""`punchlist demo mission`: a todo of a mission from its creation to its follow-up, with models that have learnt their
parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.config import current_user
from punchlist.kernel.actors import Actor, Role
from punchlist.kernel.text import excerpt, visible, visible_block
from punchlist.surfaces.cli.context import echo
from punchlist.surfaces.cli.tools import ModeChoice
from punchlist.surfaces.cli.worker import work

if TYPE_CHECKING:
    from punchlist.missions.model import Mission, MissionScope
    from punchlist.surfaces.conversation_view import CallStep, TurnView
    from punchlist.surfaces.services import Services

_MISSION: Final = "developer-experience"
_EARLIER: Final = (
    *(("local-build-time", 55), ("local-build-time", 63)),
    *(("cache-hit-rate", 82), ("cache-hit-rate", 81), ("cache-hit-rate", 82)),
)
_TITLES: Final = (
    "1. Creation: the pillar's owner plans, in the pillar chat",
    "2. Activation: the Mission Lead starts it, in the mission chat",
    "3. Execution: the owner works on it, in the TODO chat",
    "4. Completion and 5. follow-up: the Mission Lead reviews, in the TODO chat",
)
_HIDDEN: Final = ("missionSlug", "pillarSlug", "requestId")


def play(services: Services, source: Path, *, quiet: bool) -> dict[str, Any]:
    """From a mission.json to a todo that is done; what came of it, for programs."""
    from punchlist.engine.periodic import enqueue_cycle
    from punchlist.missions.config import file
    from punchlist.missions.model import MissionScope
    from punchlist.missions.todos.tools import todo_json

    text = file.read(Path("mission.json"))
    you = Actor(Role.PERSON, current_user())
    mission = services.missions.apply(MissionScope("demo", you), file.parse_mission(text), text).mission
    scope = MissionScope(mission.conversation_id, you)
    _record(services, scope)
    enqueue_cycle(services.store, scope, mission)
    work(services, f"rehearsal:{source / 'rehearsal.yaml'}", ModeChoice.YOLO, until_idle=True, quiet=True)
    if not quiet:
        _tell(services, mission)
    listed = services.mission_todos.list(_MISSION)
    return {
        "mission": _MISSION,
        "todos": [todo_json(todo) for todo in listed.items],
        "summary": listed.capacity.as_json(),
        "runs": [run.as_json() for run in services.runs.list(mission_id=mission.id, ended=True)],
    }


def _record(services: Services, scope: MissionScope) -> None:
    for metric, value in _EARLIER:
        services.metrics.record(scope, _MISSION, metric, value)


def _tell(services: Services, mission: Mission) -> None:
    from punchlist.surfaces.conversation_view import TurnView, build_view

    (standing,) = services.missions.pillars(mission)
    pillar, stories = standing.pillar, list[TurnView]()
    for chat in (pillar.conversation_id, mission.conversation_id, pillar.todo_conversation_id):
        told = build_view(services.conversations.turns(chat), services.conversations.messages(chat))
        stories += [one for one in told if isinstance(one, TurnView)]
    for title, story in zip(_TITLES, stories, strict=True):
        echo(f"\n{title}\n")
        _tell_turn(story)
    notes = [one for one in services.conversations.messages(mission.conversation_id) if one.kind == "note"]
    for note in notes:
        echo(f"  → {visible(note.content.partition(chr(10))[2])}")
    echo()
    from punchlist.surfaces.cli import mission_board

    for line in mission_board.lines(mission_board.look(services, mission.slug)):
        echo(line)


def _tell_turn(story: TurnView) -> None:
    from punchlist.surfaces.conversation_view import MessageStep, ReplyStep

    for step in story.steps:
        match step:
            case MessageStep(text=text):
                _indented(text, "  > ", most=12)
            case ReplyStep(text=text, calls=calls):
                if text:
                    _indented(text, f"  {story.turn.agent_id}: ")
                for call in calls:
                    _tell_call(call)


def _tell_call(call: CallStep) -> None:
    import json

    echo(f"  [calls {visible(call.tool)}]")
    for name, value in json.loads(call.arguments).items():
        if name not in _HIDDEN:
            _indented(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), f"    {name}: ")
    echo(f"    → {_came(call)}")


def _came(call: CallStep) -> str:
    """In a few words, what a call gave."""
    import json

    try:
        result = json.loads(call.result or "")
        if "items" in result:
            return f"{len(result['items'])} todos, {result['summary']}"
        return f"status {result['status']}, id {result['id']}"
    except (ValueError, KeyError, TypeError):
        return excerpt(" ".join((call.result or "").split()), 100)


def _indented(text: str, first: str, most: int = 40) -> None:
    import textwrap

    lines = [part for line in visible_block(text).splitlines() for part in (textwrap.wrap(line, 100) or [""])]
    for number, line in enumerate(lines[:most]):
        echo(f"{first if number == 0 or '>' in first else ' ' * len(first)}{line}".rstrip())
    if len(lines) > most:
        echo(f"{' ' * len(first)}…")
