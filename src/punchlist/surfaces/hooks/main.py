"""`punchlist hook EVENT`: JSON of an agent's program on standard input, our answer on standard output.

Whatever happens, the answer is JSON, the exit code is 0 (some programs take another for an order), and it
comes soon: a hook that fails lets the agent go on, and leaves a line in a log. Nothing heavy is imported
before it is known that there is a list at all.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final, NoReturn

from punchlist.config import Settings, load
from punchlist.host_sessions import AGENT_NAME, HostSessions, notes_folder
from punchlist.surfaces.hooks.log import note
from punchlist.surfaces.hooks.payload import NAMES, HookEvent, HookPayload, UnreadablePayload, read
from punchlist.surfaces.hooks.quick_check import surely_nothing_open
from punchlist.surfaces.hooks.tool_counter import ToolCounter

if TYPE_CHECKING:
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.conversations.model import Scope
    from punchlist.integrations.hook_service import HookService
    from punchlist.surfaces.services import Services

_LARGEST: Final = 16 * 1024 * 1024
_PATIENCE: Final = 8.0
"""Seconds. The programs wait for 20 and more, and people for less."""
_LONGEST_PAUSE: Final = 5.0
_MOST_LOOKS: Final = 5
_OUR_TOOLS: Final = "punchlist"
_STRANGER: Final = "agent"
_AGENT: Final = re.compile(AGENT_NAME)
_PROJECTS: Final = {"claude-code": "CLAUDE_PROJECT_DIR"}
"""Where a program says in which folder it was started, which is where its server works."""

OpenServices = Callable[[Settings], "Services"]
Reply = dict[str, Any]


def run(open_desk: OpenServices, arguments: Sequence[str]) -> NoReturn:
    """Answer, and end the program."""
    line = _AnswerLine()
    where = _here()
    watchdog = Timer(_PATIENCE, _give_up, (line, where, arguments))
    watchdog.daemon = True
    watchdog.start()
    try:
        if sys.stdin.isatty():
            print("punchlist hook is for the programs of agents, which write JSON to it.", file=sys.stderr)
        elif (told := read(*_understood(arguments), sys.stdin.buffer.read(_LARGEST))) is not None:
            where = _folder(told, os.environ) or where
            reply, pause = _answer(_HookCall(open_desk, load(cwd=where), told))
            watchdog.cancel()
            time.sleep(min(pause, _LONGEST_PAUSE))
            line.say(reply)
    except BaseException as error:
        _complain(where, arguments, error)
    line.say({})
    os._exit(0)


class _AnswerLine:
    """Where the answer goes; the first one counts."""

    def __init__(self) -> None:
        self._said = Lock()

    def say(self, reply: Reply) -> None:
        # It may be that nobody listens any more.
        with suppress(OSError, ValueError, AttributeError):
            if self._said.acquire(blocking=False):
                os.write(sys.stdout.fileno(), json.dumps(reply).encode() + b"\n")


def _here() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        # It may be gone.
        return None


def _give_up(line: _AnswerLine, where: Path | None, arguments: Sequence[str]) -> None:
    try:
        line.say({})
        note(where, os.environ, f"{_call(arguments)}: took longer than {_PATIENCE:g} seconds")
    finally:
        os._exit(0)


def _complain(where: Path | None, arguments: Sequence[str], error: BaseException) -> None:
    told = str(error) if isinstance(error, UnreadablePayload) else f"{type(error).__name__}: {error}"
    note(where, os.environ, f"{_call(arguments)}: {told}")


def _call(arguments: Sequence[str]) -> str:
    return " ".join(("hook", *arguments[:4]))


def _understood(arguments: Sequence[str]) -> tuple[HookEvent, str | None]:
    rest = list(arguments)
    agent = None
    if "--for" in rest[:-1]:
        place = rest.index("--for")
        agent = rest[place + 1]
        if not _AGENT.fullmatch(agent):
            raise UnreadablePayload("--for: is no name of an agent")
        del rest[place : place + 2]
    if len(rest) != 1 or rest[0] not in NAMES:
        raise UnreadablePayload(f"there is no such hook; there are: {', '.join(HookEvent)}")
    return NAMES[rest[0]], agent


def _folder(told: HookPayload, environment: Mapping[str, str]) -> Path | None:
    """Where the agent works, wherever the hook was started. An agent may go into another project for a while, and its
    program tells of that; its list stays where it is."""
    begun = environment.get(_PROJECTS.get(told.agent or "", ""))
    places = [Path(place) for place in (begun, told.cwd) if place]
    return next((place for place in places if place.is_dir()), None)


def _answer(visit: _HookCall) -> tuple[Reply, float]:
    """What to say, and how many seconds to wait before."""
    match visit.told.event:
        case HookEvent.STOP:
            return visit.stop()
        case HookEvent.PROMPT:
            return visit.prompt(), 0.0
        case HookEvent.SESSION_START:
            return visit.session_start(), 0.0
        case HookEvent.TOOL:
            return visit.tool(), 0.0


@dataclass(frozen=True, slots=True)
class _HookCall:
    """One event of one agent."""

    open_desk: OpenServices
    settings: Settings
    told: HookPayload

    def stop(self) -> tuple[Reply, float]:
        if self.told.planning or not self._has_lists():
            return {}, 0.0
        if surely_nothing_open(self.settings.database, self._session()):
            return {}, 0.0
        from punchlist.surfaces.hooks.replies import most_sent_back, verdict

        hosts, scope = self._hosts()
        if self.told.agent == "claude-code" and (tasks := self._its_tasks()) is not None:
            # Others may share its tasks, and have done some of them.
            hosts.copied(scope, tasks, again=True)
        came = hosts.stopped(
            scope,
            self.told.own_session,
            most=most_sent_back(self.told.agent, os.environ),
            work=self.told.work,
            worked=self._uses().any(),
        )
        return verdict(came), came.pause

    def prompt(self) -> Reply:
        if self.told.of_nobody or not self._has_lists():
            return {}
        from punchlist.kernel.secrets import Redactor

        self._uses().clear()
        hosts, scope = self._hosts()
        return self._context(hosts.prompted(scope, self.told.prompt, hide=Redactor(os.environ).text))

    def session_start(self) -> Reply:
        if not self._has_lists():
            from punchlist.integrations.hook_service import initial_reminder

            agent = self._agent(self.open_desk(self.settings))
            return self._context(initial_reminder(agent) if self.told.fresh else "")
        self._uses().tidy(time.time())
        hosts, scope = self._hosts()
        return self._context(hosts.began(scope, self.told.own_session, fresh=self.told.fresh))

    def tool(self) -> Reply:
        if _OUR_TOOLS in self.told.tool.lower():
            self._uses().clear()
            return {}
        from punchlist.integrations.native_lists import OWN_TOOLS, TASK_TOOLS

        if self.told.tool in OWN_TOOLS | TASK_TOOLS:
            self._uses().clear()
            self._copy_its_list()
            return {}
        if not self._has_lists():
            return {}
        after = self._agent(self.open_desk(self.settings)).remind_after
        uses = self._uses().count() if after else 0
        if not after or uses < after:
            return {}
        self._uses().clear()
        hosts, scope = self._hosts()
        return self._context(hosts.used(scope, self.told.own_session, uses))

    def _copy_its_list(self) -> None:
        todos = self._its_list()
        # A list that was emptied is one that is clear; it is no reason to make a database.
        if not todos and (todos is None or not self._has_lists()):
            return
        hosts, scope = self._hosts()
        for _ in range(_MOST_LOOKS):
            if todos is None or not hosts.copied(scope, todos):
                return
            # Another hook may have copied more of it meanwhile, before this one wrote what is old by now.
            seen, todos = todos, self._its_list()
            if seen == todos:
                return

    def _its_list(self) -> list[dict[str, Any]] | None:
        from punchlist.integrations.native_lists import TASK_TOOLS, own_list

        if self.told.tool in TASK_TOOLS:
            return self._its_tasks()
        return own_list(self.told.tool, self.told.arguments)

    def _its_tasks(self) -> list[dict[str, Any]] | None:
        from punchlist.integrations.native_lists import own_tasks
        from punchlist.surfaces.hooks.claude_tasks import task_files

        files = task_files(os.environ, self.told.session)
        return None if files is None else own_tasks(files)

    # --- with what ----------------------------------------------------------------------------------------

    def _has_lists(self) -> bool:
        """Whether there is a database. Asking must not make one."""
        path = self.settings.database.removeprefix("sqlite:///")
        return "://" in path or Path(path).expanduser().exists()

    def _session(self) -> str:
        """The agent's, as far as it has one already."""
        return HostSessions(self.settings, os.environ).find(self.told.own_session)

    def _uses(self) -> ToolCounter:
        return ToolCounter(notes_folder(self.settings, os.environ), self.told.own_session or "")

    def _context(self, text: str) -> Reply:
        from punchlist.surfaces.hooks.replies import context

        return context(self.told.name, text)

    def _agent(self, desk: Services) -> AgentDefinition:
        """As whom the agents of others are limited."""
        from punchlist.agent.definitions import BUILT_IN, with_overrides
        from punchlist.agent.env_overrides import from_environment

        continues, continuations = from_environment(os.environ)
        settled = self.settings.project or self.settings.user
        supervisor = desk.agents.named("supervisor") if settled else BUILT_IN["supervisor"]
        return with_overrides(supervisor, continues=continues, continuations=continuations)

    def _hosts(self) -> tuple[HookService, Scope]:
        from punchlist.conversations.model import Scope
        from punchlist.integrations.hook_service import HookService
        from punchlist.kernel.actors import Actor, Role

        desk = self.open_desk(self.settings)
        desk.trust.check_database(self.settings)
        seats = HostSessions(self.settings, os.environ)
        agent, own = self.told.agent, self.told.own_session
        session = seats.find(own) if agent is None else seats.take(agent, own)
        actor = Actor(Role.SUPERVISOR, agent or _STRANGER)
        return HookService(desk.store, desk.conversations, desk.checklists, self._agent(desk)), Scope(session, actor)
