"""What a member of a mission can read: missions, one todo, chats, feedback, metrics, questions, recommendations,
directives and runs. For the tool `mission_read` and the resources of the MCP server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from punchlist.app import Services
from punchlist.conversations.model import NoticeKind
from punchlist.errors import InvalidInput
from punchlist.kernel.camel_json import camel_json
from punchlist.missions.changes import find_pillar
from punchlist.missions.model import Mission, MissionScope, MissionTodo
from punchlist.missions.recommendations.tools import view_json
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.tools import todo_json
from punchlist.missions.todos.transitions import find_todo
from punchlist.missions.todos.validation import check_mission
from punchlist.views import mission_repository as view_repository
from punchlist.views.chat import read_chat
from punchlist.views.mission_repository import MAX_REQUESTS
from punchlist.views.todo_detail import read_parts, request_json

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
MAX_TEXT_LENGTH: Final = 8_000
"""Characters of one message; the end of a longer one is cut."""
_RUN_FIELDS: Final = ("id", "kind", "status", "agent", "todo_id", "why", "wish", "created_at", "ended_at")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MemberQuery:
    what: str
    mission_slug: str | None = None
    pillar_slug: str | None = None
    todo_id: str | None = None
    limit: int = DEFAULT_LIMIT


class MemberViews:
    def __init__(self, services: Services, scope: MissionScope) -> None:
        self._services = services
        self._scope = scope

    def read(self, query: MemberQuery) -> Json:
        if query.what == "missions":
            return {"items": [self._mission_json(mission) for mission in self._missions()]}
        slug = query.mission_slug or self._scope.mission_slug
        if slug is None:
            raise InvalidInput("missionSlug: is required")
        check_mission(self._scope, slug)
        return VIEWS[query.what](self, self._services.missions.get(slug), query)

    def _missions(self) -> list[Mission]:
        if self._scope.mission_slug is not None:
            return [self._services.missions.get(self._scope.mission_slug)]
        return self._services.missions.list()[:MAX_LIMIT]

    def _mission_json(self, mission: Mission) -> Json:
        bound = self._scope.pillar_slug
        pillars = [state.pillar for state in self._services.missions.pillars(mission)]
        return {
            **camel_json(mission, "slug", "name", "description", "status"),
            **self._services.mission_todos.capacity(mission.slug).as_json(),
            "pillars": [camel_json(each, "slug", "name") for each in pillars if bound in (None, each.slug)],
            **({"myPillar": bound} if bound else {}),
        }

    def _todo(self, mission: Mission, todo_id: str | None) -> MissionTodo:
        if todo_id is None:
            raise InvalidInput("todoId: is required; mission_todo_list has the ids")
        with self._services.store.read() as tx:
            return find_todo(tx, mission, todo_id)

    def todo(self, mission: Mission, query: MemberQuery) -> Json:
        todo = self._todo(mission, query.todo_id)
        with self._services.store.read() as tx:
            parts = read_parts(tx, todo)
        asked = self.questions(mission, query)["items"]
        questions = {"questions": asked} if asked else {}
        return {**todo_json(todo), **parts.as_json(), **questions, "messages": list(self._messages(todo))}

    def chat(self, mission: Mission, query: MemberQuery) -> Json:
        """The end of the mission chat, of a pillar's chat, or of the chat in which a todo is worked on."""
        conversation_id = mission.conversation_id
        with self._services.store.read() as tx:
            if query.todo_id is not None:
                todo = find_todo(tx, mission, query.todo_id)
                pillars = self._services.missions.pillars(mission)
                found = {state.pillar.id: state.pillar.todo_conversation_id for state in pillars}
                conversation_id = found.get(todo.pillar_id, conversation_id)
            elif query.pillar_slug is not None:
                conversation_id = find_pillar(tx, mission, query.pillar_slug).conversation_id
        page = read_chat(self._services.store, conversation_id, limit=query.limit)
        messages = [
            {
                **camel_json(entry.message, "role", "kind", "created_at"),
                "agent": entry.turn.agent_id if entry.turn else None,
                "content": entry.message.content[:MAX_TEXT_LENGTH],
            }
            for entry in page.entries
        ]
        return {"chat": conversation_id, "items": messages, "earlier": page.earlier}

    def feedback(self, mission: Mission, query: MemberQuery) -> Json:
        """The reports and the feedback on a todo, or on all todos in progress that the caller can see."""
        if query.todo_id is not None:
            todos = [self._todo(mission, query.todo_id)]
        else:
            pillar = query.pillar_slug or self._scope.pillar_slug
            todos = self._services.mission_todos.list(
                mission.slug, pillar=pillar, status={TodoStatus.IN_PROGRESS}
            ).items
        found = [message for todo in todos for message in self._messages(todo)]
        return {"items": sorted(found, key=lambda message: message["at"])[-query.limit :]}

    def _messages(self, todo: MissionTodo) -> Iterator[Json]:
        for message in self._services.mission_todos.messages(todo.id):
            kind = "feedback" if message.kind == NoticeKind.TODO_FEEDBACK else "report"
            told = {"kind": kind, "author": message.author, "at": message.at, "text": message.text[:MAX_TEXT_LENGTH]}
            yield {"todoId": todo.id, **told}

    def metrics(self, mission: Mission, query: MemberQuery) -> Json:
        views = self._services.metrics.views(mission.slug)
        wanted = query.pillar_slug or self._scope.pillar_slug
        found = [view.as_json() for view in views if wanted in (None, view.pillar_slug)]
        return {"items": [{**view, "readings": view["readings"][-10:]} for view in found[: query.limit]]}

    def questions(self, mission: Mission, query: MemberQuery) -> Json:
        """What waits for a person: questions of the mission, and approvals and questions of its agents."""
        todo_id = self._todo(mission, query.todo_id).id if query.todo_id is not None else ""
        with self._services.store.read() as tx:
            of_agents = view_repository.agent_requests(tx, mission_id=mission.id, todo_id=todo_id, most=query.limit)
        fields = ("id", "todo_id", "kind", "question", "status", "asked_at", "reminders")
        of_mission = self._services.escalations.list(mission.slug, limit=MAX_REQUESTS)
        items = [camel_json(each, *fields) for each in of_mission if todo_id in ("", each.todo_id)]
        items += map(request_json, of_agents)
        return {"items": sorted(items, key=lambda item: item["askedAt"])[: query.limit]}

    def recommendations(self, mission: Mission, query: MemberQuery) -> Json:
        found = self._services.recommendations.list(mission.slug)
        return {"items": [view_json(view) for view in found[: query.limit]], "total": len(found)}

    def directives(self, mission: Mission, _: MemberQuery) -> Json:
        found = self._services.directives.list(mission.slug)
        return {"items": [camel_json(each, "number", "content", "holds_until", "created_by") for each in found]}

    def runs(self, mission: Mission, query: MemberQuery) -> Json:
        if query.todo_id is not None:
            found = self._services.runs.for_todo(self._todo(mission, query.todo_id).id)
        else:
            found = self._services.runs.list(mission_id=mission.id, limit=query.limit)
        return {"items": [camel_json(run, *_RUN_FIELDS) for run in found[: query.limit]]}

    def strategies(self, mission: Mission, query: MemberQuery) -> Json:
        wanted = query.pillar_slug or self._scope.pillar_slug
        states = [each for each in self._services.missions.pillars(mission) if wanted in (None, each.pillar.slug)]
        return {
            "items": [
                {**camel_json(strategy, "id", "description", "status"), "pillarSlug": state.pillar.slug}
                for state in states
                for strategy in state.strategies
            ]
        }


VIEWS: Final[Mapping[str, Callable[[MemberViews, Mission, MemberQuery], Json]]] = {
    "todo": MemberViews.todo,
    "chat": MemberViews.chat,
    "feedback": MemberViews.feedback,
    "metrics": MemberViews.metrics,
    "questions": MemberViews.questions,
    "recommendations": MemberViews.recommendations,
    "directives": MemberViews.directives,
    "strategies": MemberViews.strategies,
    "runs": MemberViews.runs,
}
WHAT: Final = ("missions", *VIEWS)
