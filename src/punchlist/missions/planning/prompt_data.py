"""Fills the prompts of a cycle with current data (M12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from punchlist.conversations.model import NoticeKind
from punchlist.conversations.service import Conversations
from punchlist.errors import IllegalTransition
from punchlist.missions.config.policy import cadence_of
from punchlist.missions.escalations.service import Escalations
from punchlist.missions.metrics.service import Metrics, MetricView
from punchlist.missions.model import Mission, MissionTodo, Pillar
from punchlist.missions.planning import lead_prompts, prompts
from punchlist.missions.planning.lead_prompts import LeadUpdates, PlanningReport, PostedMessage
from punchlist.missions.service import Missions
from punchlist.missions.todos.deadlines import OverdueReport
from punchlist.missions.todos.lifecycle import OPEN as UNENDED
from punchlist.missions.todos.lifecycle import TodoStatus
from punchlist.missions.todos.service import MissionTodos
from punchlist.runs.lifecycle import OPEN
from punchlist.runs.service import Runs

_RESULTS: Final = (NoticeKind.TODO_RESULT, NoticeKind.TODO_ERROR, NoticeKind.WORKER_RESULT)


@dataclass(frozen=True, slots=True)
class PromptData:
    missions: Missions
    todos: MissionTodos
    metrics: Metrics
    escalations: Escalations
    conversations: Conversations
    runs: Runs

    def for_owner(self, mission: Mission, pillar: Pillar, now: datetime, stale: Collection[str] = ()) -> str:
        state = next((state for state in self.missions.pillars(mission) if state.pillar.id == pillar.id), None)
        if state is None:
            raise IllegalTransition(f"Pillar {pillar.slug!r} is archived and is no longer planned.")
        return prompts.planning_prompt(
            pillar,
            self._metrics_by_pillar(mission).get(pillar.slug, ()),
            state.strategies,
            self.todos.list(mission.slug, pillar=pillar.slug).items,
            self.todos.capacity(mission.slug),
            zone=cadence_of(mission).timezone,
            now=now,
            stale=stale,
        )

    def for_lead(self, mission: Mission, reports: Mapping[str, str], overdue_report: OverdueReport, since: str) -> str:
        """`reports` are the owners' reports by pillar slug; `since` is the time of the Lead's last review."""
        views = self._metrics_by_pillar(mission)
        strategies = {state.pillar.slug: state.strategies for state in self.missions.pillars(mission)}
        planning_reports = [
            PlanningReport(pillar, text, views.get(pillar, ()), strategies.get(pillar, ()))
            for pillar, text in reports.items()
        ]
        # Include todos that earlier cycles flagged.
        late = [todo for todo in self.todos.list(mission.slug, status=UNENDED).items if todo.overdue_at is not None]
        known = {todo.id for todo in overdue_report.overdue}
        overdue_report = overdue_report._replace(
            overdue=(*overdue_report.overdue, *(todo for todo in late if todo.id not in known))
        )
        escalations = self.escalations.list(mission.slug)
        capacity = self.todos.capacity(mission.slug)
        return lead_prompts.lead_review_prompt(
            mission, planning_reports, capacity, overdue_report, escalations, self.updates(mission, since)
        )

    def overview(self, mission: Mission, pillar: Pillar | None = None) -> str:
        """Goals, metrics and capacity of a mission, with its open questions, or of one of its pillars."""
        metrics, capacity = self.metrics_of(mission, pillar), self.todos.capacity(mission.slug)
        if pillar is not None:
            return lead_prompts.overview_text(pillar.description, metrics, capacity)
        return lead_prompts.overview_text(mission.description, metrics, capacity, self.escalations.list(mission.slug))

    def metrics_of(self, mission: Mission, pillar: Pillar | None = None) -> list[MetricView]:
        views = self._metrics_by_pillar(mission)
        return [view for slug, group in views.items() if pillar is None or slug == pillar.slug for view in group]

    def updates(self, mission: Mission, since: str) -> LeadUpdates:
        """New results in the TODO chats, and todos in progress without an open run (M9)."""
        posted = [
            PostedMessage(state.pillar.slug, message.kind, message.content)
            for state in self.missions.pillars(mission)
            for message in self.conversations.messages_outside_turns(state.pillar.todo_conversation_id)
            if message.created_at >= since and message.kind in _RESULTS
        ]
        running = self.todos.list(mission.slug, status={TodoStatus.IN_PROGRESS}).items
        return LeadUpdates(posted, [(todo, why) for todo in running if (why := self._idle_reason(todo)) is not None])

    def _idle_reason(self, todo: MissionTodo) -> str | None:
        """How the last run on a todo ended; None while a run is open."""
        found = self.runs.for_todo(todo.id)
        if any(run.status in OPEN for run in found):
            return None
        return f"its last run is {found[0].status}. {found[0].why}" if found else "it has no run"

    def _metrics_by_pillar(self, mission: Mission) -> dict[str, list[MetricView]]:
        views: dict[str, list[MetricView]] = {}
        for view in self.metrics.views(mission.slug):
            views.setdefault(view.pillar_slug, []).append(view)
        return views
