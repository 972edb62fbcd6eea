"""Runs the check of an item: a command through scheduler and policy, a file, or a metric (V2).

`PassedChecks` counts the changes after which a check is run again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from punchlist.agent.tool_execution import ToolExecution
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.clock import Clock, timestamp
from punchlist.models.model import RequestedCall
from punchlist.toolcalls.policy import Policy, Verdict
from punchlist.toolcalls.tool import AgentTool, Arguments, BaseTool, Effect, Schema, TimedOut, ToolContext, ToolFailure
from punchlist.tools.command import MAX_TIMEOUT
from punchlist.tools.tool_session import ToolSession, ToolSite
from punchlist.verification.file_check import run_file_check
from punchlist.verification.model import Check, CheckOutcome, CheckResult, check_result
from punchlist.verification.person_checks import is_person_check

COMMAND_TOOL: Final = "run_command"
DEFAULT_TIMEOUT: Final = 300.0
_FAILED: Final = "tool_failed"
"""The error code of a command that ended with another exit code than 0."""
ASKS_AGAIN: Final = "It was not run again after the last change, because it needs an approval each time."


def _failures(check: Check) -> tuple[str, ...]:
    """Error codes that mean that the check has failed. A check that an agent wrote has to end within its time."""
    return (_FAILED,) if check.by_person else (_FAILED, TimedOut.code)


class PersonCheckTool(BaseTool):
    """Runs the commands of checks that a person wrote, without approval. Never offered to a model.

    It runs only calls that were announced by their id, and ids are made by the loop: a model that calls it by name gets
    an error.
    """

    name = "run_check"
    description = "Runs the check of an item."
    effect = Effect.LIST
    time_limit = MAX_TIMEOUT + 60
    is_offered = False

    def __init__(self, command: AgentTool, site: ToolSite) -> None:
        self._command = command
        self._site = site
        self.policy: Policy | None = None
        """Set once the session has one: a rule that denies the command wins over a person's check."""
        self._permitted: set[str] = set()
        self.input_schema: Schema = command.input_schema

    def runs(self, check: Check, arguments: Arguments) -> bool:
        """Whether the user wrote the check, according to what this machine recorded, and no rule denies it.

        The database alone is not enough: an agent can write to it.
        """
        trust = self._site.trust
        if trust is None or not is_person_check(trust, self._site.project_folder, check):
            return False
        return self.policy is None or self.policy.decide(self._command, arguments).verdict is not Verdict.DENY

    def permit(self, call_id: str) -> None:
        self._permitted.add(call_id)

    async def run(self, arguments: Arguments, running: ToolContext) -> Any:
        if not any(running.call_id == id or running.call_id.startswith(f"{id}.") for id in self._permitted):
            raise ToolFailure("There is no tool run_check.")
        return await self._command.run(arguments, running)


def person_check(session: ToolSession) -> PersonCheckTool | None:
    found = session.tools.get(PersonCheckTool.name)
    if not isinstance(found, PersonCheckTool):
        return None
    found.policy = session.policy
    return found


class CheckRun(NamedTuple):
    """The result of a check, or what it waits for."""

    result: CheckResult | None = None
    waiting: Sequence[str] = ()


MetricCheck = Callable[[str], Awaitable[tuple[CheckOutcome, str]]]


class CheckRunner:
    def __init__(
        self,
        execution: ToolExecution,
        workspace: Path,
        clock: Clock,
        person_check: PersonCheckTool | None = None,
        metric: MetricCheck | None = None,
    ) -> None:
        self._person_check = person_check
        self._execution = execution
        self._workspace = workspace
        self._clock = clock
        self._metric = metric

    async def run(self, check: Check, call_id: str, signal: CancelSignal) -> CheckRun:
        """`call_id` is that of the command's call. After a restart, the same id finds the result or the approval."""
        if check.command is not None:
            return await self._command(check, call_id, signal)
        if check.file is not None:
            outcome, output = run_file_check(check, self._workspace)
        else:
            outcome, output = await self._metric_meets(check)
        return CheckRun(self._result(check, outcome, output))

    async def run_again(self, check: Check, call_id: str, signal: CancelSignal) -> CheckResult:
        """Run a check that has passed before. It counts as not run if it would wait for a person again."""
        if check.command is not None and self._execution.needs_person(self._call(check, call_id)):
            return self._result(check, CheckOutcome.NOT_RUN, ASKS_AGAIN)
        ran = await self.run(check, call_id, signal)
        return ran.result or self._result(check, CheckOutcome.NOT_RUN, "; ".join(ran.waiting))

    async def _command(self, check: Check, call_id: str, signal: CancelSignal) -> CheckRun:
        call = self._call(check, call_id)
        if self._person_check is not None and call.tool == self._person_check.name:
            self._person_check.permit(call_id)
        done = await self._execution.run_check(call, signal)
        if done.waiting:
            return CheckRun(waiting=done.waiting)
        (result,) = done.results
        if not result.failed:
            outcome = CheckOutcome.PASSED
        else:
            outcome = CheckOutcome.FAILED if done.codes.get(call_id) in _failures(check) else CheckOutcome.NOT_RUN
        return CheckRun(check_result(outcome, result.text, timestamp(self._clock())))

    def _call(self, check: Check, call_id: str) -> RequestedCall:
        arguments = {"command": check.command, "timeout": check.timeout or DEFAULT_TIMEOUT}
        tool = COMMAND_TOOL
        if self._person_check is not None and self._person_check.runs(check, arguments):
            tool = self._person_check.name
        return RequestedCall(call_id, tool, arguments)

    def _result(self, check: Check, outcome: CheckOutcome, output: str) -> CheckResult:
        unusable = check.file is not None or (check.metric is not None and self._metric is None)
        if outcome is CheckOutcome.NOT_RUN and unusable and not check.by_person:
            # Otherwise an agent could write a check that can never fail.
            outcome = CheckOutcome.FAILED
        return check_result(outcome, output, timestamp(self._clock()))

    async def _metric_meets(self, check: Check) -> tuple[CheckOutcome, str]:
        if self._metric is None or check.metric is None:
            return CheckOutcome.NOT_RUN, "Only todos of a mission can be checked by a metric."
        return await self._metric(check.metric)


class PassedChecks:
    """Which checks have passed before the last change: their results do not count any more.

    One counter for a turn and everything below it. It counts calls, not files: what a command changes is unknown.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._passed: dict[str, int] = {}

    @property
    def any_change(self) -> bool:
        return self._changes > 0

    def changed(self) -> None:
        """A call that can have changed something has ended."""
        self._changes += 1

    def add(self, item_id: str) -> None:
        """The check of the item has its result now."""
        self._passed[item_id] = self._changes

    def is_stale(self, item_id: str) -> bool:
        """A result that is not known here is from before a restart."""
        return self._changes > self._passed.get(item_id, 0)
