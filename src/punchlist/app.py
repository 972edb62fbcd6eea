"""Entry point of the program, and its services.

Each service is built from the settings on first use, so a command imports only what it needs.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punchlist.agent.agents_config import AgentsConfig
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.agent.events import EventListener
    from punchlist.agent.telemetry import Telemetry
    from punchlist.checklist.service import Checklists
    from punchlist.config import Settings
    from punchlist.conversations.model import Scope
    from punchlist.conversations.service import Conversations
    from punchlist.engine.worker import Worker
    from punchlist.idempotency.service import IdempotentRequests
    from punchlist.integrations.host_checks import HostChecks
    from punchlist.missions.directives.service import Directives
    from punchlist.missions.escalations.service import Escalations
    from punchlist.missions.metrics.collectors import MetricCollection
    from punchlist.missions.metrics.service import Metrics
    from punchlist.missions.model import Mission
    from punchlist.missions.planning.prompt_data import PromptData
    from punchlist.missions.recommendations.service import Recommendations
    from punchlist.missions.service import Missions
    from punchlist.missions.strategies import Strategies
    from punchlist.missions.todos.checks import CompletionChecks
    from punchlist.missions.todos.service import MissionTodos
    from punchlist.models.model import Model
    from punchlist.notify.push import WebPush
    from punchlist.notify.service import Notifier
    from punchlist.plan.service import Plans
    from punchlist.runs.service import Runs
    from punchlist.storage.store import Store
    from punchlist.storage.trusted_files import UntrustedDatabase
    from punchlist.tokens.service import AccessTokens
    from punchlist.toolcalls.approval_store import Approvals
    from punchlist.toolcalls.policy import Mode
    from punchlist.tools.sandbox import SandboxSettings
    from punchlist.tools.settings import ToolSettings
    from punchlist.tools.tool_session import ToolSite
    from punchlist.trust import Trust
    from punchlist.views.inbox import Inbox
    from punchlist.views.live_hub import LiveHub
    from punchlist.views.todos import SessionTodos


PRIVATE_ADDRESSES = "PUNCHLIST_PRIVATE_ADDRESSES"
"""`allow` lets HTTP collectors connect to private addresses. Only the environment can allow it, not a settings file."""


class Services:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.on_untrusted_database: Callable[[UntrustedDatabase], bool] | None = None
        """Asks the user what to do with a database of another author; True if it can be opened now."""
        self._project_settings = settings
        self._store: Store | None = None
        self._opening = Lock()

    @property
    def store(self) -> Store:
        # Locked: several threads may ask for the store first.
        with self._opening:
            if self._store is None:
                from punchlist.storage.open import open_store

                self.check_database()
                settings = self.settings
                self._store = open_store(
                    settings.database,
                    synchronous=settings.synchronous,
                    pool_size=settings.pool_size,
                    trust=self.trust,
                )
            return self._store

    def read_only_reason(self) -> str | None:
        """Why the database was opened for reading only; None if it can be written or was not opened."""
        return self._store.database.read_only_reason() if self._store is not None else None

    def check_database(self) -> None:
        """Raise unless the user chose, created or adopted the database.

        The address in the user's own settings is the decision to trust a PostgreSQL server.
        """
        from punchlist.storage.open import parse_database_url
        from punchlist.storage.trusted_files import UntrustedDatabase, check_adopted

        self.settings.check_database_is_trusted()
        file = parse_database_url(self.settings.database).file
        if file is None:
            return
        try:
            check_adopted(file, self.trust)
        except UntrustedDatabase as problem:
            if self.on_untrusted_database is None or not self.on_untrusted_database(problem):
                raise

    def close(self) -> None:
        if "live" in self.__dict__:
            self.live.close()
        if telemetry := self.__dict__.get("telemetry"):
            telemetry.flush()
        if self._store is not None:
            self._store.close()

    def current_session(self) -> str:
        """The session that was named; else the session of this project that was used last."""
        from punchlist.views.sessions import current_session

        return current_session(self.store, self._project_settings)

    def new_session(self) -> str:
        """The session that was named; else the id of a new session."""
        from punchlist.views.sessions import new_session_id

        settings = self._project_settings
        return settings.session if settings.session_is_named else new_session_id(settings)

    def use_session(self, session: str) -> None:
        self.settings = replace(self.settings, session=session)

    @cached_property
    def conversations(self) -> Conversations:
        from punchlist.conversations.service import Conversations

        return Conversations(self.store)

    @cached_property
    def checklists(self) -> Checklists:
        from punchlist.checklist.service import Checklists

        return Checklists(self.store, self.conversations)

    @cached_property
    def plans(self) -> Plans:
        from punchlist.plan.service import Plans

        return Plans(self.store)

    @cached_property
    def todos(self) -> SessionTodos:
        from punchlist.views.todos import SessionTodos

        return SessionTodos(self)

    @cached_property
    def inbox(self) -> Inbox:
        from punchlist.views.inbox import Inbox

        return Inbox(self)

    @cached_property
    def live(self) -> LiveHub:
        from punchlist.views.live_hub import LiveHub

        return LiveHub(self.store)

    @cached_property
    def missions(self) -> Missions:
        from punchlist.missions.service import Missions

        return Missions(self.store, self.conversations)

    @cached_property
    def mission_todos(self) -> MissionTodos:
        from punchlist.missions.todos.service import MissionTodos

        return MissionTodos(self.store)

    @cached_property
    def metrics(self) -> Metrics:
        from punchlist.missions.metrics.service import Metrics

        return Metrics(self.store)

    @cached_property
    def escalations(self) -> Escalations:
        from punchlist.missions.escalations.service import Escalations

        return Escalations(self.store)

    @cached_property
    def strategies(self) -> Strategies:
        from punchlist.missions.strategies import Strategies

        return Strategies(self.store)

    @cached_property
    def directives(self) -> Directives:
        from punchlist.missions.directives.service import Directives

        return Directives(self.store)

    @cached_property
    def recommendations(self) -> Recommendations:
        from punchlist.missions.recommendations.service import Recommendations

        return Recommendations(self.store)

    @cached_property
    def briefing(self) -> PromptData:
        from punchlist.missions.planning.prompt_data import PromptData

        return PromptData(
            self.missions, self.mission_todos, self.metrics, self.escalations, self.conversations, self.runs
        )

    @cached_property
    def collecting(self) -> MetricCollection:
        from punchlist.missions.metrics.collectors import MetricCollection

        private = os.environ.get(PRIVATE_ADDRESSES) == "allow"
        return MetricCollection(
            self.metrics,
            self.workspace,
            os.environ,
            self.trusts_mission,
            private,
            self.sandbox.env_pass,
            self.sandboxed,
        )

    def host_checks(self, scope: Scope, workspace: Path) -> HostChecks:
        """Runs checks for third-party agents."""
        from punchlist.integrations.host_checks import HostChecks
        from punchlist.verification.person_checks import is_person_check

        return HostChecks(
            workspace,
            self.store.clock,
            lambda: self.site(scope, workspace),
            lambda check: is_person_check(self.trust, workspace, check),
        )

    @cached_property
    def telemetry(self) -> Telemetry | None:
        from punchlist.config import exports_telemetry

        if not exports_telemetry(os.environ):
            return None
        from punchlist.agent.telemetry import open_telemetry

        return open_telemetry()

    def observed(self, then: EventListener | None) -> EventListener | None:
        """A listener for the events of agents, which also exports them where that is configured."""
        return self.telemetry.listener(then) if self.telemetry is not None else then

    @property
    def workspace(self) -> Path:
        """The project's root, else the current folder."""
        return self.settings.root or Path.cwd()

    @cached_property
    def checks(self) -> CompletionChecks:
        from punchlist.missions.config.trust import check_name
        from punchlist.missions.todos.checks import CompletionChecks

        return CompletionChecks(
            self.store,
            self.trusts_mission,
            self.workspace,
            self.mission_todos.record_check,
            environment=os.environ,
            env_pass=self.sandbox.env_pass,
            is_trusted_command=lambda todo: self.trust.trusts_text(check_name(todo), todo.completion_check or ""),
            sandboxed=self.sandboxed,
        )

    def trusts_mission(self, mission: Mission) -> bool:
        from punchlist.missions.config.trust import trust_name, trusted_text

        text = trusted_text(mission)
        return text is not None and self.trust.trusts_text(trust_name(mission.slug, self.workspace), text)

    @cached_property
    def runs(self) -> Runs:
        from punchlist.missions.run_control import MissionRuns

        return MissionRuns(self.store)

    def worker(
        self,
        model_for: Callable[[AgentDefinition], Model],
        mode: Mode | None,
        *,
        slots: int,
        report: Callable[[str], None],
    ) -> Worker:
        from punchlist.engine.worker import Worker

        return Worker(self, model_for, mode, slots=slots, report=report, periodic=self.notifier.run)

    @cached_property
    def notifier(self) -> Notifier:
        from punchlist.notify.service import Notifier
        from punchlist.notify.settings import load_notify

        private = os.environ.get(PRIVATE_ADDRESSES) == "allow"
        return Notifier(
            self.store,
            self.inbox,
            load_notify(self.settings),
            os.environ,
            allow_private=private,
            web_push=self.web_push,
        )

    @cached_property
    def web_push(self) -> WebPush:
        from punchlist.notify.push import WebPush

        return WebPush(
            self.trust.folder,
            self.settings.database,
            self.trust.sign,
            self.tokens.is_valid,
            allow_private=os.environ.get(PRIVATE_ADDRESSES) == "allow",
        )

    @cached_property
    def approvals(self) -> Approvals:
        from punchlist.kernel.secrets import Redactor
        from punchlist.toolcalls.approval_store import Approvals

        return Approvals(self.store, Redactor(os.environ), self.trust.sign)

    @cached_property
    def tokens(self) -> AccessTokens:
        from punchlist.tokens.service import AccessTokens

        return AccessTokens(self.store, self.trust.sign)

    @cached_property
    def idempotent_requests(self) -> IdempotentRequests:
        from punchlist.idempotency.service import IdempotentRequests

        return IdempotentRequests(self.store)

    @cached_property
    def agents(self) -> AgentsConfig:
        from punchlist.agent.agents_config import load_agents

        return load_agents(self.settings, self.trust)

    @cached_property
    def trust(self) -> Trust:
        from punchlist.trust import Trust

        return Trust.of_user(os.environ)

    @cached_property
    def sandbox(self) -> SandboxSettings:
        from punchlist.tools.sandbox import load_sandbox

        return load_sandbox(self.settings, self.trust)

    def sandboxed(self, arguments: Sequence[str]) -> Sequence[str]:
        """The command line of a check or a collector of a mission, in the sandbox if one is configured."""
        if not self.sandbox.is_on:
            return arguments
        from punchlist.tools.sandbox_command import sandboxed

        return sandboxed(arguments, self.sandbox, self.workspace)

    @cached_property
    def tool_settings(self) -> ToolSettings:
        from punchlist.tools.settings import load_tool_settings

        return load_tool_settings(self.settings, self.trust)

    def site(self, scope: Scope, workspace: Path, turn_id: str | None = None) -> ToolSite:
        from punchlist.tools.tool_session import ToolSite

        outputs = self.settings.outputs(os.environ)
        trust = self.trust
        return ToolSite(
            self.store,
            scope,
            workspace,
            self.tool_settings,
            outputs,
            os.environ,
            trust.sign,
            turn_id,
            trust=trust,
            project=self.workspace,
        )


def main() -> None:
    # `from punchlist import kernel` would ask for a public name of the library first.
    import punchlist.kernel

    punchlist.kernel.is_program = True
    # Imports create many objects and no garbage; collecting at the default threshold costs a tenth of a short command.
    gc.set_threshold(50_000, 20, 20)
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        # Agents call hooks at every step, so this path does not even import Typer.
        from punchlist.surfaces.hooks.main import run

        run(Services, sys.argv[2:])
    from punchlist.surfaces.cli.main import start

    start(Services)
