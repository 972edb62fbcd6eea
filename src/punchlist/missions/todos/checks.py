"""Checks: what must hold before a todo can be completed (M16).

A check is looked at after the work, and what came of it is kept with the todo. A command runs only when
the person has trusted it: with the mission's file, or by giving it to a todo with their own hands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.process_runner import CapturedProcess, ProcessStartError, run_captured
from punchlist.kernel.secrets import Redactor
from punchlist.kernel.text import excerpt, visible_block
from punchlist.missions import repository as mission_repository
from punchlist.missions.config.policy import CHECK_TIMEOUT_SECONDS
from punchlist.missions.config.trust import IsTrusted, trusted_config
from punchlist.missions.metrics import repository as metric_repository
from punchlist.missions.metrics.status import format_number
from punchlist.missions.model import Metric, MetricReading, Mission, MissionScope, MissionTodo
from punchlist.storage.statements import Statement
from punchlist.storage.store import Store

WORKED_AT: Final = Statement("SELECT started_at, worked_at FROM mission_todos WHERE id = :id")
_LAST_LINES: Final = 20
_LONGEST: Final = 1_500

RecordCheck = Callable[[MissionScope, str, bool, str], object]
"""`MissionTodos.record_check`: keeps with a todo what came of its check."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    passed: bool
    detail: str
    """What was seen; for the Lead, and for whoever has to go on."""


class CompletionChecks:
    def __init__(
        self,
        store: Store,
        trust_of: IsTrusted,
        workspace: Path,
        record: RecordCheck,
        *,
        environment: Mapping[str, str],
        vouched: Callable[[MissionTodo], bool] = lambda _: False,
    ) -> None:
        """`vouched`: whether the person at this machine gave the todo its command (`trusted.check_name`)."""
        self._store = store
        self._trust_of = trust_of
        self._workspace = workspace
        self._record = record
        self._environment = environment
        self._redact = Redactor(environment).text
        self._vouched = vouched

    def run(self, scope: MissionScope, todo: MissionTodo) -> CheckResult:
        """Look whether a todo's check holds now, and keep what came of it."""
        if todo.completion_check is None:
            raise InvalidInput(f"Todo {todo.id!r} has no check.")
        before = self._worked_at(todo)
        result = self._evaluate(todo, json.loads(todo.completion_check), before)
        if self._worked_at(todo) != before:
            result = CheckResult(False, "The todo was worked on while its check ran. Check it again.")
        self._record(scope, todo.id, result.passed, result.detail)
        return result

    def _evaluate(self, todo: MissionTodo, check: Mapping[str, Any], worked_at: str) -> CheckResult:
        match check:
            case {"name": name}:
                return self._named(todo, str(name))
            case {"metric": slug, "atMost": level}:
                return self._metric(
                    todo, str(slug), lambda value: value <= level, f"at most {format_number(level)}", worked_at
                )
            case {"metric": slug, "atLeast": level}:
                return self._metric(
                    todo, str(slug), lambda value: value >= level, f"at least {format_number(level)}", worked_at
                )
            case {"command": command}:
                if not self._vouched(todo):
                    return CheckResult(
                        False, "Its check is a command that nobody at this machine has given it; it was not run."
                    )
                return self._command(command, CHECK_TIMEOUT_SECONDS)
        return CheckResult(False, f"There is no check such as {excerpt(json.dumps(check))}.")

    def _named(self, todo: MissionTodo, name: str) -> CheckResult:
        mission = self._mission(todo)
        config = trusted_config(mission, self._trust_of)
        if config is None:
            return CheckResult(
                False,
                f"The check {excerpt(name)!r} runs only when the mission's file is trusted. "
                f"Read it, then run `punchlist mission trust {mission.slug}`.",
            )
        check = config.checks.get(name)
        if check is None:
            return CheckResult(False, f"The mission's file has no check {excerpt(name)!r}.")
        return self._command(check["command"], float(check.get("timeoutSeconds") or CHECK_TIMEOUT_SECONDS))

    def _command(self, command: Sequence[str], seconds: float) -> CheckResult:
        words = [str(word) for word in command]
        spelled = excerpt(" ".join(words), 200)
        try:
            ran = run_captured(
                words,
                folder=self._workspace,
                environment=self._environment,
                seconds=seconds,
                max_output=0,
                stop_at_max=False,
            )
        except ProcessStartError as error:
            return CheckResult(False, self._redact(f"{spelled} cannot be started: {error}."))
        if ran.timed_out:
            ended = f"took longer than its limit of {seconds:g} s and was ended"
        elif ran.code is not None and ran.code < 0:
            ended = f"was ended by signal {-ran.code}"
        else:
            ended = f"ended with exit code {ran.code}"
        return CheckResult(ran.code == 0, self._redact(f"{spelled} {ended}.{_output_tail(ran)}"))

    def _metric(
        self, todo: MissionTodo, slug: str, holds: Callable[[float], bool], wanted: str, worked_at: str
    ) -> CheckResult:
        mission = self._mission(todo)
        metric, reading = self._latest_reading(mission, slug)
        if metric is None:
            return CheckResult(False, f"The mission has no metric {excerpt(slug)!r}.")
        if reading is None or reading.at < worked_at:
            how = (
                f"metric record {mission.slug} {slug} VALUE" if metric.collector_config.get("type") == "manual" else ""
            )
            return CheckResult(
                False,
                f"{metric.name} has no reading since the todo was last worked on ({worked_at[:19]}Z). "
                f"Run `punchlist {how or f'metric collect {mission.slug} {slug}'}`, then check again.",
            )
        return CheckResult(
            holds(reading.value), f"{metric.name} is {format_number(reading.value, metric.unit)}; wanted: {wanted}."
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
        """The moment after which a check counts."""
        with self._store.read() as tx:
            row = tx.one(WORKED_AT, id=todo.id)
        return max((at for at in row or () if at), default=todo.created_at)


def _output_tail(ran: CapturedProcess) -> str:
    """The end of what a command printed: that is where tests say what failed."""
    printed = (ran.tail + ran.errors).decode(errors="replace")
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()][-_LAST_LINES:]
    return f"\n{visible_block(chr(10).join(lines))[-_LONGEST:]}" if lines else ""
