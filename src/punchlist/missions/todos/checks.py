"""Runs the completion checks of todos and stores the results (M16).

A check runs after the work. A command runs only when the person has trusted it: with the mission file, or by giving
it to the todo personally.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.process_runner import CapturedProcess, ProcessStartError, run_captured
from punchlist.kernel.secrets import Redactor, without_secrets
from punchlist.kernel.text import excerpt, visible_block
from punchlist.missions import repository as mission_repository
from punchlist.missions.config.policy import CHECK_TIMEOUT_SECONDS
from punchlist.missions.config.trust import IsTrusted, trusted_config
from punchlist.missions.metrics import repository as metric_repository
from punchlist.missions.metrics.status import format_number
from punchlist.missions.model import Metric, MetricReading, Mission, MissionScope, MissionTodo
from punchlist.missions.todos import repository as todo_repository
from punchlist.storage.store import Store
from punchlist.verification.file_check import run_file_check
from punchlist.verification.model import CheckOutcome, check_from_json

_MAX_OUTPUT_LINES: Final = 20
_MAX_OUTPUT_LENGTH: Final = 1_500

RecordCheck = Callable[[MissionScope, str, bool, str], object]
"""`MissionTodos.record_check`."""


@dataclass(frozen=True, slots=True)
class MissionCheckResult:
    passed: bool
    detail: str
    """The reason, for the Lead and the owner."""


class CompletionChecks:
    def __init__(
        self,
        store: Store,
        is_trusted: IsTrusted,
        workspace: Path,
        record: RecordCheck,
        *,
        environment: Mapping[str, str],
        env_pass: Sequence[str] = (),
        is_trusted_command: Callable[[MissionTodo], bool] = lambda _: False,
        sandboxed: Callable[[Sequence[str]], Sequence[str]] = lambda words: words,
    ) -> None:
        """`env_pass`: variables with secrets that commands get. `sandboxed` puts a command into the sandbox.
        `is_trusted_command`: whether this machine's user gave the todo its command (`trust.check_name`).
        """
        self._store = store
        self._is_trusted = is_trusted
        self._workspace = workspace
        self._record = record
        self._environment = without_secrets(environment, env_pass)
        self._redact = Redactor(environment).text
        self._is_trusted_command = is_trusted_command
        self._sandboxed = sandboxed

    def run(self, scope: MissionScope, todo: MissionTodo) -> MissionCheckResult:
        """Run a todo's check and store the result."""
        if todo.completion_check is None:
            raise InvalidInput(f"Todo {todo.id!r} has no check.")
        before = self._worked_at(todo)
        result = self._evaluate(todo, json.loads(todo.completion_check), before)
        if self._worked_at(todo) != before:
            result = MissionCheckResult(False, "The todo changed while its check ran. Run the check again.")
        self._record(scope, todo.id, result.passed, result.detail)
        return result

    def _evaluate(self, todo: MissionTodo, check: Mapping[str, Any], worked_at: str) -> MissionCheckResult:
        match check:
            case {"name": name}:
                return self._named(todo, str(name))
            case {"metric": slug, "atMost": limit}:
                return self._metric(
                    todo, str(slug), lambda value: value <= limit, f"at most {format_number(limit)}", worked_at
                )
            case {"metric": slug, "atLeast": limit}:
                return self._metric(
                    todo, str(slug), lambda value: value >= limit, f"at least {format_number(limit)}", worked_at
                )
            case {"file": _}:
                return self._file(check)
            case {"command": command}:
                if not self._is_trusted_command(todo):
                    return MissionCheckResult(
                        False, "Its check is a command that no user of this machine has given it; it was not run."
                    )
                return self._command(command, CHECK_TIMEOUT_SECONDS)
        return MissionCheckResult(False, f"Unknown kind of check: {excerpt(json.dumps(check))}.")

    def _file(self, check: Mapping[str, Any]) -> MissionCheckResult:
        parsed = check_from_json(check, by_person=False)
        outcome, detail = run_file_check(parsed, self._workspace)
        return MissionCheckResult(outcome is CheckOutcome.PASSED, detail or f"{parsed.description}.")

    def _named(self, todo: MissionTodo, name: str) -> MissionCheckResult:
        mission = self._mission(todo)
        config = trusted_config(mission, self._is_trusted)
        if config is None:
            return MissionCheckResult(
                False,
                f"The check {excerpt(name)!r} runs only after the mission file is trusted. "
                f"Read the file, then run `punchlist mission trust {mission.slug}`.",
            )
        check = config.checks.get(name)
        if check is None:
            return MissionCheckResult(False, f"The mission file has no check {excerpt(name)!r}.")
        return self._command(check["command"], float(check.get("timeoutSeconds") or CHECK_TIMEOUT_SECONDS))

    def _command(self, command: Sequence[str], seconds: float) -> MissionCheckResult:
        words = [str(word) for word in command]
        spelled = excerpt(" ".join(words), 200)
        try:
            ran = run_captured(
                self._sandboxed(words),
                folder=self._workspace,
                environment=self._environment,
                seconds=seconds,
                max_output=0,
                stop_at_max=False,
            )
        except ProcessStartError as error:
            return MissionCheckResult(False, self._redact(f"{spelled} cannot be started: {error}."))
        return MissionCheckResult(ran.code == 0, self._redact(f"{spelled} {ran.ending(seconds)}.{_output_tail(ran)}"))

    def _metric(
        self, todo: MissionTodo, slug: str, holds: Callable[[float], bool], requirement: str, worked_at: str
    ) -> MissionCheckResult:
        mission = self._mission(todo)
        metric, reading = self._latest_reading(mission, slug)
        if metric is None:
            return MissionCheckResult(False, f"The mission has no metric {excerpt(slug)!r}.")
        if reading is None or reading.at < worked_at:
            manual = metric.collector_type == "manual"
            how = f"record {mission.slug} {slug} VALUE" if manual else f"collect {mission.slug} {slug}"
            return MissionCheckResult(
                False,
                f"{metric.name} has no reading since the last work on the todo ({worked_at[:19]}Z). "
                f"Run `punchlist mission metric {how}`, then run the check again.",
            )
        return MissionCheckResult(
            holds(reading.value),
            f"{metric.name} is {format_number(reading.value, metric.unit)}; required: {requirement}.",
        )

    def _latest_reading(self, mission: Mission, slug: str) -> tuple[Metric | None, MetricReading | None]:
        with self._store.read() as tx:
            metric = mission_repository.metric_by_slug(tx, mission.id, slug)
            if metric is None or metric.status != "active":
                return None, None
            return metric, next(iter(metric_repository.latest_readings(tx, metric.id, 1)), None)

    def _mission(self, todo: MissionTodo) -> Mission:
        with self._store.read() as tx:
            mission = mission_repository.mission(tx, todo.mission_id)
        assert mission is not None
        return mission

    def _worked_at(self, todo: MissionTodo) -> str:
        with self._store.read() as tx:
            return todo_repository.last_worked_at(tx, todo)


def _output_tail(ran: CapturedProcess) -> str:
    """The last lines of the output: that is where tests report failures."""
    printed = (ran.tail + ran.errors).decode(errors="replace")
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()][-_MAX_OUTPUT_LINES:]
    return f"\n{visible_block(chr(10).join(lines))[-_MAX_OUTPUT_LENGTH:]}" if lines else ""
