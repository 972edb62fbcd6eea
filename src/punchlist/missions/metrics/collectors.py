"""Collects the current value of a metric as its mission file defines (M7).

Collectors that run code or send requests need the person's trust in the file. Every collector has limits on time and
size, and returns a number or raises an error that explains the failure.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.conversations.model import Scope
from punchlist.errors import InvalidInput, PunchlistError
from punchlist.kernel.events import canonical_json
from punchlist.kernel.process_runner import CapturedProcess, ProcessStartError, run_captured
from punchlist.kernel.secrets import Redactor, without_secrets
from punchlist.kernel.text import excerpt, json_type
from punchlist.missions.config.policy import MAX_TIMEOUT_SECONDS
from punchlist.missions.config.trust import COLLECTORS_NEEDING_TRUST, IsTrusted, trusted_collector, trusted_config
from punchlist.missions.metrics import status as metric_status
from punchlist.missions.metrics.http_fetch import FetchError, fetch
from punchlist.missions.metrics.service import MANUAL, Metrics
from punchlist.missions.model import Metric, Mission
from punchlist.storage.sqlite import is_open_here

if TYPE_CHECKING:
    from punchlist.missions.config.model import MissionConfig

DEFAULT_TIMEOUT: Final = 60.0
HTTP_TIMEOUT: Final = 30.0
MAX_OUTPUT_BYTES: Final = 64 * 1024
MAX_CONTENT_BYTES: Final = 1024 * 1024
MATCH_TIMEOUT: Final = 10.0
_COLLECTOR_SCRIPT: Final = str(Path(__file__).with_name("collector_process.py"))
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LEAF: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class CollectorError(PunchlistError):
    """A collector failed. The message contains no secrets."""

    code = "cannot_collect"


@dataclass(frozen=True, slots=True)
class CollectedMetric:
    """The value of one metric, or the error."""

    metric: Metric
    value: float | None = None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"metric": self.metric.slug, "value": self.value, "error": self.error}


@dataclass(frozen=True, slots=True)
class MetricCollection:
    """Runs the collectors of a mission."""

    metrics: Metrics
    workspace: Path
    environment: Mapping[str, str] = field(repr=False)
    is_trusted: IsTrusted
    allow_private: bool = False
    """Whether HTTP collectors may request private addresses."""
    env_pass: Sequence[str] = ()
    """Variables with secrets that commands get."""
    sandboxed: Callable[[Sequence[str]], Sequence[str]] = lambda words: words
    """Puts a command into the sandbox."""

    def collect(
        self, scope: Scope, mission_slug: str, slugs: Collection[str] = (), *, once: str | None = None
    ) -> list[CollectedMetric]:
        """Collect the named metrics, or all that are not manual. A failure does not stop the others. `once` is an
        idempotency key: a repeated call with the same key records no second reading."""
        mission, metrics = self.metrics.find_collectable(mission_slug, slugs)
        needs_trust = any(metric.collector_type in COLLECTORS_NEEDING_TRUST for metric in metrics)
        config = trusted_config(mission, self.is_trusted) if needs_trust else None
        return [self._collect(scope, mission, metric, config, once) for metric in metrics]

    def _collect(
        self, scope: Scope, mission: Mission, metric: Metric, config: MissionConfig | None, once: str | None
    ) -> CollectedMetric:
        trusted = trusted_collector(config, metric.slug)
        try:
            value = collect(
                metric if trusted is None else metric._replace(collector=canonical_json(dict(trusted))),
                mission_slug=mission.slug,
                workspace=self.workspace,
                trusted=trusted is not None,
                environment=self.environment,
                allow_private=self.allow_private,
                env_pass=self.env_pass,
                sandboxed=self.sandboxed,
            )
        except CollectorError as error:
            if metric.collector_type != MANUAL:
                self.metrics.record_failure(scope, metric.id, str(error))
            return CollectedMetric(metric, error=str(error))
        self.metrics.record(scope, mission.slug, metric.slug, value, source=metric.collector_type, once=once)
        return CollectedMetric(metric, value)


def collect(
    metric: Metric,
    *,
    mission_slug: str,
    workspace: Path,
    trusted: bool,
    environment: Mapping[str, str],
    allow_private: bool = False,
    env_pass: Sequence[str] = (),
    sandboxed: Callable[[Sequence[str]], Sequence[str]] = lambda words: words,
) -> float:
    """The current value of a metric. `allow_private` permits HTTP requests to private networks."""
    config, kind = metric.collector_config, metric.collector_type
    if kind == "manual":
        raise CollectorError(
            f"{metric.slug} is recorded manually: `punchlist mission metric record {mission_slug} {metric.slug} VALUE`."
        )
    if kind in COLLECTORS_NEEDING_TRUST and not trusted:
        raise CollectorError(
            f"{metric.slug}: its {kind} collector runs only after the mission file is trusted. "
            f"Read the file, then run `punchlist mission trust {mission_slug}`."
        )
    try:
        if kind not in _COLLECTORS:
            raise _CollectorFailed(f"there is no collector of type {excerpt(kind)!r}")
        # An HTTP collector uses variables in its headers; the others start programs, which get no secrets.
        given = environment if kind == "http" else without_secrets(environment, env_pass)
        if kind == "command":
            config = {**config, "command": sandboxed([str(word) for word in config["command"]])}
        return metric_status.checked_value(_COLLECTORS[kind](config, workspace, given, allow_private))
    except (InvalidInput, _CollectorFailed, FetchError, ProcessStartError) as error:
        raise CollectorError(Redactor(environment).text(f"{metric.slug}: {error}.")) from None


class _CollectorFailed(Exception):
    pass


# --- the collectors ---------------------------------------------------------------------------------------


def _command(config: Mapping[str, Any], workspace: Path, environment: Mapping[str, str], _: bool) -> float:
    arguments = [str(word) for word in config["command"]]
    ran = _run(arguments, workspace, environment, _timeout(config, DEFAULT_TIMEOUT), MAX_OUTPUT_BYTES, "the command")
    return _number_in_text(ran.output.decode(errors="replace"), config, environment)


def _python(config: Mapping[str, Any], workspace: Path, environment: Mapping[str, str], _: bool) -> float:
    # -P: import installed packages only, not files that happen to be in the folder.
    arguments = [sys.executable, "-P", _COLLECTOR_SCRIPT, "call", str(config["entryPoint"])]
    ran = _run(arguments, workspace, environment, _timeout(config, DEFAULT_TIMEOUT), MAX_OUTPUT_BYTES, "the function")
    value = _parse_answer(ran)
    if value.startswith(("nan", "inf", "-inf")):
        raise _CollectorFailed(f"the function returned {value}, which is not a finite number")
    return metric_status.parse_number(value)


def _file(config: Mapping[str, Any], workspace: Path, environment: Mapping[str, str], _: bool) -> float:
    content = _read_workspace_file(workspace, str(config["path"]))
    if config.get("pointer") is not None:
        return _number_in_json(content, str(config["pointer"]))
    return _number_in_text(content.decode(errors="replace"), config, environment)


def _http(config: Mapping[str, Any], _: Path, environment: Mapping[str, str], allow_private: bool) -> float:
    content = fetch(
        str(config["url"]),
        headers=config.get("headers") or {},
        environment=environment,
        seconds=_timeout(config, HTTP_TIMEOUT),
        max_bytes=MAX_CONTENT_BYTES,
        allow_private=allow_private,
    )
    return _number_in_json(content, str(config.get("pointer") or ""))


_COLLECTORS: Final = {"command": _command, "file": _file, "http": _http, "python": _python}


def _timeout(config: Mapping[str, Any], default: float) -> float:
    return min(max(float(config.get("timeoutSeconds") or default), 0.01), MAX_TIMEOUT_SECONDS)


def _run(
    arguments: list[str], workspace: Path, environment: Mapping[str, str], seconds: float, max_output: int, what: str
) -> CapturedProcess:
    """Run a program that must exit with code 0."""
    try:
        ran = run_captured(arguments, folder=workspace, environment=environment, seconds=seconds, max_output=max_output)
    except ProcessStartError as error:
        raise _CollectorFailed(f"{what} {excerpt(arguments[0])!r} cannot be started: {error}") from None
    if ran.output_exceeded:
        raise _CollectorFailed(f"{what} printed more than {max_output // 1024} KB and was killed; print only a number")
    if ran.timed_out or ran.code:
        printed = f": {excerpt(ran.last_error, 300)}" if ran.last_error and not ran.timed_out else ""
        raise _CollectorFailed(f"{what} {ran.ending(seconds)}{printed}")
    return ran


def _read_workspace_file(workspace: Path, path: str) -> bytes:
    """Read a file that is inside the workspace after links are resolved."""
    root = Path(os.path.realpath(workspace))
    if "\x00" in path:
        raise _CollectorFailed(f"{excerpt(path)!r} is not a path")
    real = Path(os.path.realpath(root / path))
    if root not in real.parents:
        raise _CollectorFailed(f"{excerpt(path)!r} is outside the workspace {root}; name a file inside")
    try:
        descriptor = _open_without_links(root, real)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _CollectorFailed(f"{excerpt(path)!r} is not a regular file")
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(MAX_CONTENT_BYTES + 1)
    except OSError as error:
        raise _CollectorFailed(f"{excerpt(path)!r} cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_CONTENT_BYTES:
        raise _CollectorFailed(f"{excerpt(path)!r} is larger than {MAX_CONTENT_BYTES // 1024} KB")
    return content


def _open_without_links(root: Path, real: Path) -> int:
    """Open component by component without following links, so that a path swapped after the check cannot escape."""
    folder = os.open(root, _STEP)
    try:
        for name in real.relative_to(root).parts[:-1]:
            inner = os.open(name, _STEP, dir_fd=folder)
            os.close(folder)
            folder = inner
        if is_open_here(os.stat(real.name, dir_fd=folder, follow_symlinks=False)):
            raise _CollectorFailed(
                f"{excerpt(real.name)!r} is a database in use by Punchlist and cannot be read as a file"
            )
        return os.open(real.name, _LEAF, dir_fd=folder)
    finally:
        os.close(folder)


# --- find the number --------------------------------------------------------------------------------------


def _number_in_text(text: str, config: Mapping[str, Any], environment: Mapping[str, str]) -> float:
    pattern = config.get("pattern")
    return metric_status.parse_number(text if pattern is None else _match_pattern(str(pattern), text, environment))


def _match_pattern(pattern: str, text: str, environment: Mapping[str, str]) -> str:
    """Match in a separate process, because a pattern can take exponential time."""
    request = json.dumps({"pattern": pattern, "text": text}).encode()
    arguments = [sys.executable, "-I", "-S", _COLLECTOR_SCRIPT, "match"]
    ran = run_captured(
        arguments,
        folder=Path("/"),
        environment=environment,
        seconds=MATCH_TIMEOUT,
        max_output=2 * MAX_CONTENT_BYTES,
        input=request,
    )
    if ran.timed_out:
        raise _CollectorFailed(f"the pattern took longer than {MATCH_TIMEOUT:g} s; write one that repeats less")
    return _parse_answer(ran)


def _parse_answer(ran: CapturedProcess) -> str:
    """The result of `collector_process.py`."""
    try:
        answer = json.loads(ran.output)
    except ValueError:
        raise _CollectorFailed(f"it returned no result ({excerpt(ran.last_error, 200)})") from None
    if "error" in answer:
        raise _CollectorFailed(excerpt(str(answer["error"]), 300))
    return str(answer["value"])


def _number_in_json(content: bytes, pointer: str) -> float:
    try:
        found = _resolve_pointer(json.loads(content), pointer)
    except _CollectorFailed:
        raise
    except (ValueError, RecursionError):
        raise _CollectorFailed(
            f"the content is not JSON: {excerpt(content.decode(errors='replace').strip())!r}"
        ) from None
    if isinstance(found, str):
        return metric_status.parse_number(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _CollectorFailed(f"{_pointer_label(pointer)} is {json_type(found)}, not a number")
    return metric_status.checked_value(found)


def _resolve_pointer(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901)."""
    if pointer and not pointer.startswith("/"):
        raise _CollectorFailed(f"the pointer {excerpt(pointer)!r} must begin with /")
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and name.isascii() and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            raise _CollectorFailed(
                f"{_pointer_label(pointer)} does not exist in the content: there is no {excerpt(name)!r}"
            )
    return document


def _pointer_label(pointer: str) -> str:
    return excerpt(pointer, 100) if pointer else "the content"
