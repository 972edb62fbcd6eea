"""A task: an instruction, the files of its workspace, steps with reference work, and a hidden test for each step.

    tasks/NAME/instruction.md    what the agent is asked
    tasks/NAME/files/            the workspace
    tasks/NAME/solution.yaml     per step: title, work, the files it uses, and the check of a competent planner
    tasks/NAME/tests.py          step_1, step_2, …: run after the agent has stopped; the agent never sees them

Work is written in short form: `write: {PATH: CONTENT}`, `edit: {path, old, new}`, `run: COMMAND`. A step also reads
every file that it uses or edits and that its context does not show yet.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml

from bench.finish.workspace import TaskWorkspace

TASKS: Final = Path(__file__).parent / "tasks"
HiddenTest = Callable[[TaskWorkspace], None]


@dataclass(frozen=True, slots=True)
class WorkCall:
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    work: tuple[WorkCall, ...]
    uses: tuple[str, ...] = ()
    """Files that the work depends on."""
    check: str | Mapping[str, Any] | None = None
    """What a competent planner writes as the check of the item; None where it writes none."""


@dataclass(frozen=True)
class Task:
    name: str
    instruction: str
    steps: tuple[Step, ...]
    folder: Path

    def prepare(self, workspace: Path) -> None:
        """Copy the files of the task into the workspace."""
        shutil.copytree(self.folder / "files", workspace, dirs_exist_ok=True)

    @cached_property
    def tests(self) -> Sequence[HiddenTest]:
        names: dict[str, Any] = {}
        path = self.folder / "tests.py"
        exec(compile(path.read_text(), str(path), "exec"), names)
        return [names[f"step_{number}"] for number in range(1, len(self.steps) + 1)]

    def passed(self, workspace: Path) -> list[bool]:
        """Whether the hidden test of each step passes."""
        return [_passes(test, TaskWorkspace(workspace)) for test in self.tests]


def _passes(test: HiddenTest, workspace: TaskWorkspace) -> bool:
    try:
        test(workspace)
    except Exception:
        # Whatever an agent left behind: a missing file, a syntax error, a wrong value.
        return False
    return True


def load_tasks(names: Sequence[str] = ()) -> list[Task]:
    """All tasks, or those named. Raises ValueError for an unknown name."""
    known = sorted(path.name for path in TASKS.iterdir() if (path / "solution.yaml").exists())
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"Unknown task: {', '.join(unknown)}. Choose from {', '.join(known)}.")
    return [load_task(TASKS / name) for name in names or known]


def load_task(folder: Path) -> Task:
    steps = tuple(_step(raw) for raw in yaml.safe_load((folder / "solution.yaml").read_text()))
    return Task(folder.name, (folder / "instruction.md").read_text().strip(), steps, folder)


def _step(raw: Mapping[str, Any]) -> Step:
    work = tuple(_call(kind, value) for entry in raw["work"] for kind, value in entry.items())
    edited = [str(call.arguments["path"]) for call in work if call.tool == "edit_file"]
    uses = tuple(dict.fromkeys([*raw.get("uses", ()), *edited]))
    return Step(raw["title"], work, uses, raw.get("check"))


def _call(kind: str, value: Any) -> WorkCall:
    match kind:
        case "write":
            [(path, content)] = value.items()
            return WorkCall("write_file", {"path": path, "content": content})
        case "edit":
            return WorkCall("edit_file", value)
        case "run":
            return WorkCall("run_command", {"command": value})
    raise ValueError(f"{kind!r} is not a kind of work; use write, edit or run")
