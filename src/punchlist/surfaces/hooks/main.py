"""`punchlist hook EVENT`: reads the host's JSON on standard input, writes the reply to standard output.

The reply is always JSON and the exit code always 0, because some hosts treat another exit code as a command. A hook
that fails or takes too long lets the agent proceed and writes a line to the hook log. Heavy modules are imported only
after the fast checks.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final, NoReturn

from punchlist.config import Settings, continuation_settings, load
from punchlist.host_sessions import AGENT_NAME, HostSessions, ToolCounter, session_folder
from punchlist.integrations.call_journal import CallJournal, ReportedCalls, describe_host_call, has_failed, may_change
from punchlist.integrations.hook_log import write_log
from punchlist.kernel.clock import system_clock, timestamp
from punchlist.kernel.text import without_tags
from punchlist.storage.trusted_files import check_adopted
from punchlist.surfaces.hooks.payload import EVENT_NAMES, HookEvent, HookPayload, UnreadablePayload, parse_payload
from punchlist.trust import Trust

if TYPE_CHECKING:
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.app import Services
    from punchlist.conversations.model import Scope
    from punchlist.integrations.hook_service import HookService

_MAX_INPUT: Final = 16 * 1024 * 1024
_TIMEOUT: Final = 8.0
"""Seconds. Hosts wait for 20 or more, people for less."""
_CHECK_TIME: Final = 7.0
"""Seconds after its start until which a stop hook runs checks."""
_MAX_PAUSE: Final = 5.0
_MAX_COPIES: Final = 5
_OWN_TOOLS: Final = "punchlist"
_OWN_LIST_WRITERS: Final = ("TodoWrite", "complete_todo")
_DEFAULT_AGENT: Final = "agent"
_CLAUDE_CODE: Final = "claude-code"
_PROJECT_VARIABLES: Final = {_CLAUDE_CODE: "CLAUDE_PROJECT_DIR"}
"""The variable in which a host passes the folder that it was started in."""
_CLAUDE_CODE_BLOCK_LIMIT: Final = ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", 8)
_UNCHECKED: Final = """\
json_extract({0}, '$.check') IS NOT NULL AND json_extract({0}, '$.acceptedBy') IS NULL
        AND (coalesce(json_extract({0}, '$.checkResult.outcome'), 'failed') = 'failed'
            OR json_extract({0}, '$.checkResult.outcome') = 'passed'
            AND json_extract({0}, '$.checkResult.at') >= :prompted
            AND json_extract({0}, '$.checkResult.at') < :changed)"""
"""As `Verification.needs_check` and `Verification.is_outdated`."""
_OPEN_ITEMS: Final = f"""\
SELECT EXISTS (
    SELECT 1 FROM turn_todos JOIN turns ON turns.id = turn_todos.turn_id
    WHERE turns.conversation_id = :session AND turns.ended_at IS NULL
    AND (turn_todos.status IN ('pending', 'in_progress') OR turn_todos.status = 'completed'
        AND {_UNCHECKED.format("turn_todos.verification")})
) OR EXISTS (
    SELECT 1 FROM checklists, json_each(checklists.items) AS item
    WHERE checklists.conversation_id = :session
    AND (coalesce(json_extract(item.value, '$.status'), '') NOT IN ('completed', 'cancelled')
        OR json_extract(item.value, '$.status') = 'completed'
        AND {_UNCHECKED.format("json_extract(item.value, '$.verification')")})
) OR coalesce((
    SELECT content FROM messages WHERE conversation_id = :session AND kind = 'session_goal'
    ORDER BY position DESC LIMIT 1
), '') <> ''"""

OpenServices = Callable[[Settings], "Services"]
Reply = dict[str, Any]


def run(open_services: OpenServices, arguments: Sequence[str]) -> NoReturn:
    """Answer one hook and exit the process."""
    started = time.monotonic()
    output = _Output()
    folder = _current_folder()
    watchdog = Timer(_TIMEOUT, _time_out, (output, folder, arguments))
    watchdog.daemon = True
    watchdog.start()
    try:
        if sys.stdin.isatty():
            print("punchlist hook is called by agents, which write JSON to its standard input.", file=sys.stderr)
        elif (payload := parse_payload(*_parse(arguments), sys.stdin.buffer.read(_MAX_INPUT))) is not None:
            folder = _project_folder(payload, os.environ) or folder
            reply, pause = _answer(_HookCall(open_services, load(cwd=folder), payload, folder, started))
            watchdog.cancel()
            time.sleep(min(pause, _MAX_PAUSE))
            output.write(reply)
    except BaseException as error:
        problem = str(error) if isinstance(error, UnreadablePayload) else f"{type(error).__name__}: {error}"
        write_log(folder, os.environ, f"{_call_text(arguments)}: {problem}")
    output.write({})
    os._exit(0)


class _Output:
    """Standard output; only the first reply is written."""

    def __init__(self) -> None:
        self._written = Lock()

    def write(self, reply: Reply) -> None:
        # The host may have closed the pipe.
        with suppress(OSError, ValueError, AttributeError):
            if self._written.acquire(blocking=False):
                os.write(sys.stdout.fileno(), json.dumps(reply).encode() + b"\n")


def _current_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def _time_out(output: _Output, folder: Path | None, arguments: Sequence[str]) -> None:
    try:
        output.write({})
        write_log(folder, os.environ, f"{_call_text(arguments)}: took longer than {_TIMEOUT:g} seconds")
        _end_checks()
    finally:
        os._exit(0)


def _end_checks() -> None:
    """End the programs of checks, if any was started."""
    runner = sys.modules.get("punchlist.kernel.process_runner")
    if runner is not None:
        runner.end_all()


def _call_text(arguments: Sequence[str]) -> str:
    return " ".join(("hook", *arguments[:4]))


def _parse(arguments: Sequence[str]) -> tuple[HookEvent, str | None]:
    rest = list(arguments)
    agent = None
    if "--for" in rest[:-1]:
        index = rest.index("--for")
        agent = rest[index + 1]
        if not re.fullmatch(AGENT_NAME, agent):
            raise UnreadablePayload("--for: not a valid agent name")
        del rest[index : index + 2]
    if len(rest) != 1 or rest[0] not in EVENT_NAMES:
        raise UnreadablePayload(f"unknown event; the events are: {', '.join(HookEvent)}")
    return EVENT_NAMES[rest[0]], agent


def _project_folder(payload: HookPayload, environment: Mapping[str, str]) -> Path | None:
    """The folder that the host was started in, or else the agent's working folder.

    An agent may change into another project for a while; its list stays in the project where it started.
    """
    started_in = environment.get(_PROJECT_VARIABLES.get(payload.agent or "", ""))
    folders = [Path(folder) for folder in (started_in, payload.cwd) if folder]
    return next((folder for folder in folders if folder.is_dir()), None)


def _answer(call: _HookCall) -> tuple[Reply, float]:
    """The reply, and the seconds to wait before it is written."""
    match call.payload.event:
        case HookEvent.STOP:
            return call.stop()
        case HookEvent.PROMPT:
            return call.prompt(), 0.0
        case HookEvent.SESSION_START:
            return call.session_start(), 0.0
        case HookEvent.TOOL:
            return call.tool(), 0.0


@dataclass(frozen=True, slots=True)
class _HookCall:
    open_services: OpenServices
    settings: Settings
    payload: HookPayload
    folder: Path | None
    started: float
    """The time of the monotonic clock at which the hook was called."""

    def stop(self) -> tuple[Reply, float]:
        if self.payload.plan_mode or not self._database_exists():
            return {}, 0.0
        journal = self._journal().read()
        if not journal.claimed and _nothing_open(self.settings.database, self._find(), journal):
            return {}, 0.0
        service, scope = self._service()
        if self.payload.agent == _CLAUDE_CODE and (tasks := self._claude_tasks()) is not None:
            # The task list may be shared with other agents, which complete tasks too.
            service.copy_native_list(scope, tasks, only_existing_copy=True)
        decision = service.stop_requested(
            scope,
            self.payload.host_session,
            host_limit=_host_limit(self.payload.agent, os.environ),
            background=self.payload.background,
            worked=self._counter().is_started(),
            deadline=self.started + _CHECK_TIME,
            journal=journal,
            own_list_tool=self._own_list_tool(),
        )
        if decision.questioned:
            self._journal().add_question(decision.questioned)
        if decision.not_rechecked:
            self._journal().add_recheck(_now())
        notice = decision.notice()
        if notice and decision.is_goal_unmet:
            write_log(self.folder, os.environ, f"hook stop: {notice}")
        message = {"systemMessage": without_tags(f"Punchlist: {notice}")} if notice else {}
        if decision.prompt is not None:
            return {"decision": "block", "reason": without_tags(decision.prompt), **message}, decision.pause
        return message, 0.0

    def prompt(self) -> Reply:
        if self.payload.is_automatic_prompt or not self._database_exists():
            return {}
        from punchlist.kernel.secrets import Redactor

        self._counter().clear()
        self._journal().add_prompt(_now())
        service, scope = self._service()
        text = service.prompt_submitted(scope, self.payload.prompt, redact=Redactor(os.environ).text)
        return self._context(text)

    def session_start(self) -> Reply:
        is_new = self.payload.is_new_session
        if not self._database_exists():
            from punchlist.integrations.hook_service import initial_reminder

            return self._context(initial_reminder(self._agent(self.open_services(self.settings))) if is_new else "")
        self._counter().remove_old(time.time())
        self._journal().remove_old(time.time())
        service, scope = self._service()
        return self._context(service.session_started(scope, self.payload.host_session, is_new=is_new))

    def tool(self) -> Reply:
        if _OWN_TOOLS in self.payload.tool.lower():
            self._counter().clear()
            if self.payload.tool.endswith(_OWN_LIST_WRITERS):
                self._list_written()
            return {}
        from punchlist.integrations.native_lists import LIST_TOOLS, TASK_TOOLS

        if self.payload.tool in LIST_TOOLS | TASK_TOOLS:
            self._counter().clear()
            self._copy_native_list()
            self._list_written()
            return {}
        if not self._database_exists():
            return {}
        self._record_call()
        remind_after = self._agent(self.open_services(self.settings)).remind_after
        count = self._counter().increment() if remind_after else 0
        if not remind_after or count < remind_after:
            return {}
        self._counter().clear()
        service, scope = self._service()
        return self._context(service.tools_used(scope, self.payload.host_session, count))

    def _record_call(self) -> None:
        """Keep a successful call as evidence for the items that are completed later."""
        from punchlist.kernel.secrets import Redactor

        if not has_failed(self.payload.response):
            redact = Redactor(os.environ).text
            call = describe_host_call(self.payload.tool, self.payload.arguments, _now(), redact)
            self._journal().add_call(call)
        elif may_change(self.payload.tool):
            self._journal().add_change(_now())

    def _list_written(self) -> None:
        """Keep the evidence with the items that were completed; remember those without any for the next stop."""
        if not self._database_exists():
            return
        journal = self._journal()
        journal.add_list(_now())
        service, scope = self._service()
        if claimed := service.list_written(scope, self.payload.host_session, journal.read()):
            journal.add_claims(claimed)

    def _copy_native_list(self) -> None:
        todos = self._native_list()
        # An emptied list has nothing open: do not create a database for it.
        if not todos and (todos is None or not self._database_exists()):
            return
        service, scope = self._service()
        for _ in range(_MAX_COPIES):
            if todos is None or not service.copy_native_list(scope, todos):
                return
            # A concurrent hook may have copied a newer state before this one wrote the older state.
            copied, todos = todos, self._native_list()
            if copied == todos:
                return

    def _native_list(self) -> list[dict[str, Any]] | None:
        from punchlist.integrations.native_lists import TASK_TOOLS, parse_list

        if self.payload.tool in TASK_TOOLS:
            return self._claude_tasks()
        return parse_list(self.payload.tool, self.payload.arguments)

    def _own_list_tool(self) -> str | None:
        from punchlist.integrations.native_lists import TASK_UPDATE, TOOL_OF_AGENT

        if self.payload.agent == _CLAUDE_CODE and self._claude_tasks() is not None:
            return TASK_UPDATE
        return TOOL_OF_AGENT.get(self.payload.agent or "")

    def _claude_tasks(self) -> list[dict[str, Any]] | None:
        from punchlist.integrations.native_lists import read_claude_tasks

        return read_claude_tasks(os.environ, self.payload.session)

    def _database_exists(self) -> bool:
        """Whether there is a database. Raises if it is not the user's: then the hook stays silent."""
        self.settings.check_database_is_trusted()
        path = self.settings.database.removeprefix("sqlite:///")
        if "://" in path:
            return True
        file = Path(path).expanduser()
        check_adopted(file, Trust.of_user(os.environ))
        return file.exists()

    def _find(self) -> str:
        return HostSessions(self.settings, os.environ).find(self.payload.host_session)

    def _counter(self) -> ToolCounter:
        return ToolCounter(session_folder(self.settings, os.environ), self.payload.host_session or "")

    def _journal(self) -> CallJournal:
        return CallJournal(session_folder(self.settings, os.environ), self.payload.host_session or "")

    def _context(self, text: str) -> Reply:
        """A reply that adds text to the model's context."""
        if not text:
            return {}
        return {
            "hookSpecificOutput": {"hookEventName": self.payload.event_name, "additionalContext": without_tags(text)}
        }

    def _agent(self, services: Services) -> AgentDefinition:
        """The definition whose limits apply to third-party agents."""
        from punchlist.agent.definitions import BUILT_IN, with_overrides

        continues, continuations = continuation_settings(os.environ)
        configured = self.settings.project or self.settings.user
        supervisor = services.agents.get("supervisor") if configured else BUILT_IN["supervisor"]
        if continues is None and continuations is None:
            return supervisor
        return with_overrides(supervisor, continues=continues, continuations=continuations)

    def _service(self) -> tuple[HookService, Scope]:
        from punchlist.conversations.model import Scope
        from punchlist.integrations.hook_service import HookService
        from punchlist.kernel.events import Actor, Role

        services = self.open_services(self.settings)
        agent = self.payload.agent
        sessions = HostSessions(self.settings, os.environ)
        session = self._find() if agent is None else sessions.acquire(agent, self.payload.host_session)
        scope = Scope(session, Actor(Role.SUPERVISOR, agent or _DEFAULT_AGENT))
        checks = None
        if self.payload.event is HookEvent.STOP:
            checks = services.host_checks(scope, self.settings.root or self.folder or services.workspace)
        lists = sessions.offered_lists(session)
        return HookService(services.store, services.conversations, self._agent(services), checks, lists=lists), scope


def _now() -> str:
    return timestamp(system_clock())


def _host_limit(agent: str | None, environment: Mapping[str, str]) -> int | None:
    """How often in a row the host accepts a block while nothing changes; None if it has no limit.

    Above its limit the host lets the agent stop without showing a reason of ours.
    """
    if agent != _CLAUDE_CODE:
        return None
    variable, default = _CLAUDE_CODE_BLOCK_LIMIT
    value = environment.get(variable, "")
    return (int(value) if value.isdigit() and len(value) < 10 else default) or None


def _nothing_open(database: str, session: str, journal: ReportedCalls) -> bool:
    """True if neither the plan nor the checklist of a session has open items, and no check is to be run; False if
    unknown.

    Most stops have nothing open, and loading the services takes most of a hook's time.
    """
    path = Path(database.removeprefix("sqlite:///")).expanduser()
    if "://" in str(path) or not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as connection:
            changed = journal.changed_at if journal.changed_at > journal.rechecked_at else ""
            values = {"session": session, "prompted": journal.prompted_at, "changed": changed}
            return not connection.execute(_OPEN_ITEMS, values).fetchone()[0]
    except (sqlite3.Error, ValueError):
        return False
