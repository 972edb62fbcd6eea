"""The tool calls of a third-party agent, as its hooks reported them. They are evidence for its items (V1).

A file per host session with one JSON line per prompt, successful call, list that the agent wrote, and question about
items without evidence. It is written after every tool call, so it does not open the database. The folder may be part
of a project of another author: only regular files are used, reads are bounded, and lines that cannot be read are
skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from punchlist.kernel.text import excerpt

FOLDER: Final = "calls"
MAX_SIZE: Final = 128 * 1024
"""Bytes. Past this, the older half is removed."""
MAX_AGE: Final = 7 * 24 * 3600.0
_MAX_SUMMARY: Final = 200
_NAME_LENGTH: Final = 16
_KEY_LENGTH: Final = 8
_SUMMARY_ARGUMENTS: Final = ("command", "file_path", "filePath", "path", "url", "query", "pattern", "prompt")
"""The argument that describes a call best, by its usual names."""
_WRITERS: Final = frozenset({"edit", "write", "multiedit", "notebookedit", "write_file", "replace", "apply_patch"})
_READERS: Final = frozenset(
    {
        *("read", "grep", "glob", "ls", "list", "view", "webfetch", "websearch", "todoread", "notebookread"),
        *("read_file", "read_many_files", "list_directory", "search_file_content", "web_fetch", "google_web_search"),
        *("update_plan", "todowrite", "todo_write", "bashoutput", "askuserquestion", "toolsearch"),
    }
)
"""Tools that change nothing that a check can look at; any other one may."""
_PATH_ARGUMENTS: Final = ("file_path", "filePath", "path", "notebook_path")


@dataclass(frozen=True, slots=True)
class ReportedCall:
    at: str
    tool: str
    summary: str
    changed: str = ""
    key: str = ""
    """Identical calls have the same key."""


@dataclass(frozen=True, slots=True)
class ReportedCalls:
    since: str = ""
    """The calls after this moment were reported; empty if none were."""
    calls: tuple[ReportedCall, ...] = ()
    claimed: frozenset[str] = frozenset()
    """The ids of completed items without evidence, about which the agent was not asked yet."""
    questioned: frozenset[str] = frozenset()
    different: int = 0
    """How many different calls succeeded since the last prompt."""
    prompted_at: str = ""
    """The time of the last prompt; empty if none was reported."""
    changed_at: str = ""
    """The time of the last call that can have changed something; failed calls count, too."""
    rechecked_at: str = ""
    """When checks were last run again that could not be run."""


NO_CALLS: Final = ReportedCalls()


class CallJournal:
    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder / FOLDER
        self._file = self._folder / hashlib.sha256(session.encode()).hexdigest()[:_NAME_LENGTH]

    def add_call(self, call: ReportedCall) -> None:
        fields = {"at": call.at, "tool": call.tool, "summary": call.summary, "changed": call.changed, "key": call.key}
        self._append({name: value for name, value in fields.items() if value})

    def add_prompt(self, at: str) -> None:
        self._append({"prompt": at})

    def add_list(self, at: str) -> None:
        """The agent has written its list. That is no work, but shows that its calls are reported."""
        self._append({"list": at})

    def add_change(self, at: str) -> None:
        """A call has failed that can have changed something. It is no evidence."""
        self._append({"change": at})

    def add_recheck(self, at: str) -> None:
        """Checks were run again, and could not be run: they are not tried again until something changes."""
        self._append({"recheck": at})

    def add_claims(self, items: Collection[str]) -> None:
        """Keep the ids of completed items without evidence for the next stop."""
        self._append({"claimed": sorted(items)})

    def add_question(self, items: Collection[str]) -> None:
        """The agent is asked about these items now, and not again."""
        self._append({"questioned": sorted(items)})

    def read(self) -> ReportedCalls:
        try:
            handle = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return NO_CALLS
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return NO_CALLS
            return _parse(os.pread(handle, 2 * MAX_SIZE, max(0, status.st_size - 2 * MAX_SIZE)))
        finally:
            os.close(handle)

    def remove_old(self, now: float) -> None:
        with suppress(OSError):
            for file in () if self._folder.is_symlink() else self._folder.iterdir():
                if len(file.name) == _NAME_LENGTH and now - file.lstat().st_mtime > MAX_AGE:
                    file.unlink(missing_ok=True)

    def _append(self, line: Mapping[str, Any]) -> None:
        # Evidence is worth less than a hook that answers.
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            if self._folder.is_symlink():
                return
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(self._file, flags, 0o600)
            try:
                status = os.fstat(handle)
                if stat.S_ISREG(status.st_mode):
                    os.write(handle, json.dumps(line, separators=(",", ":")).encode() + b"\n")
                    if status.st_size > MAX_SIZE:
                        self._shorten()
            finally:
                os.close(handle)

    def _shorten(self) -> None:
        with self._file.open("rb") as file:
            file.seek(-MAX_SIZE // 2, os.SEEK_END)
            rest = file.read().partition(b"\n")[2]
        shorter = self._file.with_suffix(f".{os.getpid()}")
        shorter.write_bytes(rest)
        shorter.chmod(0o600)
        shorter.replace(self._file)


def describe_host_call(tool: str, arguments: Any, at: str, redact: Callable[[str], str]) -> ReportedCall:
    """A call in one line, without secrets."""
    values = arguments if isinstance(arguments, Mapping) else {}
    chosen = next((values[name] for name in _SUMMARY_ARGUMENTS if isinstance(values.get(name), str)), None)
    summary = chosen if chosen is not None else _compact(arguments)
    named = next((values[name] for name in _PATH_ARGUMENTS if isinstance(values.get(name), str)), "")
    changed = named if tool.lower() in _WRITERS else ""
    key = hashlib.sha256(f"{tool} {_compact(arguments)}".encode(errors="surrogateescape")).hexdigest()[:_KEY_LENGTH]
    return ReportedCall(at, excerpt(tool), _line(redact(summary)), _line(redact(changed)), key)


def may_change(tool: str) -> bool:
    """Whether a call of this tool can have changed something that a check looks at."""
    return tool.lower() not in _READERS


def has_failed(response: Any) -> bool:
    """Whether the host's report of a result says that the call failed. Most hosts report successful calls only."""
    if not isinstance(response, Mapping):
        return False
    exit_code = response.get("exit_code", response.get("exitCode"))
    return bool(
        response.get("error")
        or response.get("is_error") is True
        or response.get("isError") is True
        or response.get("success") is False
        or (isinstance(exit_code, int) and exit_code != 0)
    )


def _line(text: str) -> str:
    return excerpt(" ".join(text[: 10 * _MAX_SUMMARY].split()), _MAX_SUMMARY)


def _compact(arguments: Any) -> str:
    try:
        return json.dumps(arguments, ensure_ascii=False, separators=(",", ":")) if arguments else ""
    except (TypeError, ValueError, RecursionError):
        return ""


def _parse(data: bytes) -> ReportedCalls:
    calls: list[ReportedCall] = []
    claimed, questioned = set[str](), set[str]()
    times: list[str] = []
    different = set[str]()
    reported = False
    for line in _lines(data):
        times += [at for name in ("prompt", "list", "at") if isinstance(at := line.get(name), str)]
        reported = reported or "list" in line or "tool" in line
        if "prompt" in line:
            different.clear()
        elif "claimed" in line:
            claimed |= _ids(line["claimed"])
        elif "questioned" in line:
            questioned |= _ids(line["questioned"])
        elif isinstance(line.get("at"), str) and isinstance(line.get("tool"), str):
            summary, changed = str(line.get("summary", "")), str(line.get("changed", ""))
            key = str(line.get("key", "")) or f"{line['tool']} {summary}"
            different.add(key)
            calls.append(ReportedCall(line["at"], excerpt(line["tool"]), _line(summary), _line(changed), key))
    changes = [*_values(data, "change"), *(call.at for call in calls if may_change(call.tool))]
    since = times[0] if times and reported else ""
    asked = frozenset(questioned)
    last = {name: max(_values(data, name), default="") for name in ("prompt", "recheck")}
    return ReportedCalls(
        since,
        tuple(calls),
        frozenset(claimed - questioned),
        asked,
        len(different),
        last["prompt"],
        max(changes, default=""),
        last["recheck"],
    )


def _values(data: bytes, name: str) -> list[str]:
    return [value for line in _lines(data) if isinstance(value := line.get(name), str)]


def _lines(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def _ids(value: Any) -> set[str]:
    return {id for id in value if isinstance(id, str)} if isinstance(value, list) else set()
