"""How the value of a metric is found out: by whom the mission's file says.

What would run something or ask another machine does so only when the person has trusted that file. All
of them have limits on time and size, and what comes is a number or an error that says what came.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from punchlist.errors import InvalidInput, PunchlistError
from punchlist.kernel.process_runner import CapturedProcess, ProcessStartError, run_captured
from punchlist.kernel.secrets import Redactor
from punchlist.kernel.text import excerpt, json_type
from punchlist.missions.config.policy import MAX_TIMEOUT_SECONDS
from punchlist.missions.config.trust import COLLECTORS_NEEDING_TRUST
from punchlist.missions.metrics import status as metric_status
from punchlist.missions.metrics.http_fetch import FetchError, fetch
from punchlist.missions.model import Metric
from punchlist.storage.wal_files import is_open_here

DEFAULT_TIMEOUT: Final = 60.0
HTTP_TIMEOUT: Final = 30.0
MAX_OUTPUT_BYTES: Final = 64 * 1024
MAX_CONTENT_BYTES: Final = 1024 * 1024
MATCH_TIMEOUT: Final = 10.0
_COLLECTOR_SCRIPT: Final = str(Path(__file__).with_name("collector_process.py"))
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LEAF: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class CollectorError(PunchlistError):
    """A collector failed; the message says how, and holds no secret."""

    code = "cannot_collect"


def collect(
    metric: Metric,
    *,
    mission_slug: str,
    workspace: Path,
    trusted: bool,
    environment: Mapping[str, str],
    allow_private: bool = False,
) -> float:
    """The value of a metric, here and now. `allow_private`: an address of a private network may be asked, too."""
    how, redactor = metric.collector_config, Redactor(environment)
    kind = str(how.get("type", "manual"))
    if kind == "manual":
        raise CollectorError(
            f"{metric.slug} is recorded by hand: `punchlist mission metric record {mission_slug} {metric.slug} VALUE`."
        )
    if kind in COLLECTORS_NEEDING_TRUST and not trusted:
        raise CollectorError(
            f"{metric.slug}: its {kind} collector runs only when the mission's file is trusted. "
            f"Read it, then run `punchlist mission trust {mission_slug}`."
        )
    try:
        return metric_status.checked_value(_collector(kind)(how, workspace, environment, allow_private))
    except (InvalidInput, _CollectorFailed, FetchError) as error:
        raise CollectorError(redactor.text(f"{metric.slug}: {error}.")) from None


class _CollectorFailed(Exception):
    pass


def _collector(kind: str) -> Callable[[Mapping[str, Any], Path, Mapping[str, str], bool], float]:
    found = {"command": _command, "file": _file, "http": _http, "python": _python}.get(kind)
    if found is None:
        raise _CollectorFailed(f"there is no collector of type {excerpt(kind)!r}")
    return found


# --- the collectors ---------------------------------------------------------------------------------------


def _command(how: Mapping[str, Any], workspace: Path, environment: Mapping[str, str], _: bool) -> float:
    arguments = [str(word) for word in how["command"]]
    ran = _run(arguments, workspace, environment, _timeout(how, DEFAULT_TIMEOUT), MAX_OUTPUT_BYTES, "the command")
    return _number_in_text(ran.output.decode(errors="replace"), how, environment)


def _python(how: Mapping[str, Any], workspace: Path, environment: Mapping[str, str], _: bool) -> float:
    # Without the folder in the way of modules: an installed package is meant, not a file that lies there.
    arguments = [sys.executable, "-P", _COLLECTOR_SCRIPT, "call", str(how["entryPoint"])]
    ran = _run(arguments, workspace, environment, _timeout(how, DEFAULT_TIMEOUT), MAX_OUTPUT_BYTES, "the function")
    value = _parse_answer(ran)
    if value.startswith(("nan", "inf", "-inf")):
        raise _CollectorFailed(f"the function returned {value}, which is no number that can be compared")
    return metric_status.parse_number(value)


def _file(how: Mapping[str, Any], workspace: Path, environment: Mapping[str, str], _: bool) -> float:
    content = _read_workspace_file(workspace, str(how["path"]))
    if how.get("pointer") is not None:
        return _number_in_json(content, str(how["pointer"]))
    return _number_in_text(content.decode(errors="replace"), how, environment)


def _http(how: Mapping[str, Any], _: Path, environment: Mapping[str, str], allow_private: bool) -> float:
    content = fetch(
        str(how["url"]),
        headers=how.get("headers") or {},
        environment=environment,
        seconds=_timeout(how, HTTP_TIMEOUT),
        most=MAX_CONTENT_BYTES,
        allow_private=allow_private,
    )
    return _number_in_json(content, str(how.get("pointer") or ""))


def _timeout(how: Mapping[str, Any], usual: float) -> float:
    return min(max(float(how.get("timeoutSeconds") or usual), 0.01), MAX_TIMEOUT_SECONDS)


def _run(
    arguments: list[str], workspace: Path, environment: Mapping[str, str], seconds: float, most: int, what: str
) -> CapturedProcess:
    """What a program printed that ended well."""
    try:
        ran = run_captured(arguments, folder=workspace, environment=environment, seconds=seconds, max_output=most)
    except ProcessStartError as error:
        raise _CollectorFailed(f"{what} {excerpt(arguments[0])!r} cannot be started: {error}") from None
    if ran.timed_out:
        raise _CollectorFailed(f"{what} took longer than its limit of {seconds:g} s and was ended")
    if ran.output_exceeded:
        raise _CollectorFailed(f"{what} printed more than {most // 1024} KB and was ended; a number is enough")
    if ran.code:
        ended = f"was ended by signal {-ran.code}" if ran.code < 0 else f"ended with exit code {ran.code}"
        raise _CollectorFailed(f"{what} {ended}{f': {excerpt(ran.last_error, 300)}' if ran.last_error else ''}")
    return ran


def _read_workspace_file(workspace: Path, path: str) -> bytes:
    """A file of the workspace, wherever symbolic links lead."""
    root = Path(os.path.realpath(workspace))
    if "\x00" in path:
        raise _CollectorFailed(f"{excerpt(path)!r} is no path")
    real = Path(os.path.realpath(root / path))
    if root not in real.parents:
        raise _CollectorFailed(f"{excerpt(path)!r} leads out of the workspace {root}; name a file inside")
    try:
        descriptor = _open_without_links(root, real)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _CollectorFailed(f"{excerpt(path)!r} is no regular file")
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(MAX_CONTENT_BYTES + 1)
    except OSError as error:
        raise _CollectorFailed(f"{excerpt(path)!r} cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_CONTENT_BYTES:
        raise _CollectorFailed(f"{excerpt(path)!r} is larger than {MAX_CONTENT_BYTES // 1024} KB")
    return content


def _open_without_links(root: Path, real: Path) -> int:
    """Walked step by step and without following links: what was swapped for one since we looked is not followed."""
    folder = os.open(root, _STEP)
    try:
        for name in real.relative_to(root).parts[:-1]:
            inner = os.open(name, _STEP, dir_fd=folder)
            os.close(folder)
            folder = inner
        if is_open_here(os.stat(real.name, dir_fd=folder, follow_symlinks=False)):
            raise _CollectorFailed(
                f"{excerpt(real.name)!r} is a database that is in use here, and is not opened as a file"
            )
        return os.open(real.name, _LEAF, dir_fd=folder)
    finally:
        os.close(folder)


# --- the number in what came ------------------------------------------------------------------------------


def _number_in_text(text: str, how: Mapping[str, Any], environment: Mapping[str, str]) -> float:
    pattern = how.get("pattern")
    return metric_status.parse_number(text if pattern is None else _match_pattern(str(pattern), text, environment))


def _match_pattern(pattern: str, text: str, environment: Mapping[str, str]) -> str:
    """In a process of its own, since a pattern can take longer than anybody lives."""
    asked = json.dumps({"pattern": pattern, "text": text}).encode()
    arguments = [sys.executable, "-I", "-S", _COLLECTOR_SCRIPT, "match"]
    ran = run_captured(
        arguments,
        folder=Path("/"),
        environment=environment,
        seconds=MATCH_TIMEOUT,
        max_output=2 * MAX_CONTENT_BYTES,
        input=asked,
    )
    if ran.timed_out:
        raise _CollectorFailed(f"the pattern took longer than {MATCH_TIMEOUT:g} s; write one that repeats less")
    return _parse_answer(ran)


def _parse_answer(ran: CapturedProcess) -> str:
    """What `collector_process.py` says."""
    try:
        answer = json.loads(ran.output)
    except ValueError:
        raise _CollectorFailed(f"it gave no answer ({excerpt(ran.last_error, 200)})") from None
    if "error" in answer:
        raise _CollectorFailed(excerpt(str(answer["error"]), 300))
    return str(answer["value"])


def _number_in_json(content: bytes, pointer: str) -> float:
    try:
        found = _resolve_pointer(json.loads(content), pointer)
    except _CollectorFailed:
        raise
    except (ValueError, RecursionError):
        raise _CollectorFailed(f"what came is no JSON: {excerpt(content.decode(errors='replace').strip())!r}") from None
    if isinstance(found, str):
        return metric_status.parse_number(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _CollectorFailed(f"{_pointer_label(pointer)} is {json_type(found)}, not a number")
    return metric_status.checked_value(found)


def _resolve_pointer(document: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) leads to."""
    if pointer and not pointer.startswith("/"):
        raise _CollectorFailed(f"the pointer {excerpt(pointer)!r} must begin with /")
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and name.isascii() and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            raise _CollectorFailed(f"{_pointer_label(pointer)} is not in what came: there is no {excerpt(name)!r}")
    return document


def _pointer_label(pointer: str) -> str:
    return excerpt(pointer, 100) if pointer else "what came"
