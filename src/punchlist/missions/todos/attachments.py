"""Comments on mission todos and files attached to them (M18). The next worker on a todo reads them in its request."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

from punchlist.errors import Conflict, IllegalTransition, InvalidInput, NotAllowed
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import excerpt, line_problem, raw_problem, visible
from punchlist.missions.changes import MissionWrite
from punchlist.missions.model import MissionScope, MissionTodo, TodoChange, TodoComment, TodoFile
from punchlist.missions.todos import repository as todo_repository
from punchlist.missions.todos.lifecycle import MEMBERS, PartAction
from punchlist.missions.todos.queries import TodoQueries
from punchlist.missions.todos.transitions import lock_todo
from punchlist.missions.todos.validation import MAX_NAME_LENGTH, MAX_REASON_LENGTH, parse_block

MAX_COMMENT_LENGTH: Final = 5_000
MAX_COMMENTS: Final = 500
MAX_FILES: Final = 20
MAX_FILE_LENGTH: Final = 20_000
"""Characters of a stored text."""
MAX_PATH_LENGTH: Final = 1_000


class TodoAttachments(TodoQueries):
    def comment(self, scope: MissionScope, mission_slug: str, todo_id: str, text: str) -> TodoChange:
        content = parse_block("text", text, MAX_COMMENT_LENGTH)
        _check_member(scope)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            if len(todo_repository.comments_of(tx, todo.id)) >= MAX_COMMENTS:
                raise IllegalTransition(f"“{visible(todo.title)}” ({todo.id}) has {MAX_COMMENTS} comments, the limit.")
            comment = TodoComment(new_id(), write.mission.id, todo.id, str(scope.actor), content, tx.now())
            todo_repository.insert_comment(tx, comment)
            data = {"title": todo.title, "comment": comment._asdict()}
            reason = excerpt(content, 200)
            write.append(PartAction.COMMENT, todo.id, reason, data, from_status=todo.status, to=todo.status)
            return TodoChange(todo)

    def attach(
        self, scope: MissionScope, mission_slug: str, todo_id: str, name: str, content: str | None, reason: str
    ) -> TodoChange:
        """Attach a file of the workspace by its path, or a text with a name."""
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        if problem := path_problem(name) if content is None else line_problem(name, max_length=MAX_NAME_LENGTH):
            raise InvalidInput(f"{'path' if content is None else 'name'}: {problem}")
        if content is not None and (problem := raw_problem(content, max_length=MAX_FILE_LENGTH)):
            raise InvalidInput(f"text: {problem}")
        _check_member(scope)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            files = todo_repository.files_of(tx, todo.id)
            if any(file.name == name.strip() for file in files):
                raise Conflict(
                    f"“{visible(todo.title)}” ({todo.id}) has a file {excerpt(name)!r} already. Detach it first."
                )
            if len(files) >= MAX_FILES:
                raise IllegalTransition(f"“{visible(todo.title)}” ({todo.id}) has {MAX_FILES} files, the limit.")
            actor = str(scope.actor)
            file = TodoFile(new_id(), write.mission.id, todo.id, name.strip(), content, actor, tx.now())
            todo_repository.insert_file(tx, file)
            _append(write, PartAction.ATTACH, todo, file, reason)
            return TodoChange(todo)

    def detach(self, scope: MissionScope, mission_slug: str, todo_id: str, name: str, reason: str) -> TodoChange:
        reason = parse_block("reason", reason, MAX_REASON_LENGTH)
        _check_member(scope)
        with self._store.write() as tx:
            write, todo, _ = lock_todo(tx, scope, mission_slug, todo_id)
            files = {file.name: file for file in todo_repository.files_of(tx, todo.id)}
            if (file := files.get(name.strip())) is None:
                known = ", ".join(map(visible, files)) or "none"
                raise InvalidInput(f"name: “{visible(todo.title)}” has no file {excerpt(name)!r}. Attached: {known}.")
            tx.run(todo_repository.DELETE_FILE, id=file.id)
            _append(write, PartAction.DETACH, todo, file, reason)
            return TodoChange(todo)

    def comments(self, todo_id: str) -> list[TodoComment]:
        """Oldest first."""
        with self._store.read() as tx:
            return todo_repository.comments_of(tx, todo_id)

    def files(self, todo_id: str) -> list[TodoFile]:
        with self._store.read() as tx:
            return todo_repository.files_of(tx, todo_id)


def path_problem(path: object) -> str | None:
    """Why a path cannot be attached. It may point to a file that does not exist yet, but never out of the workspace."""
    if problem := line_problem(path, max_length=MAX_PATH_LENGTH):
        return problem
    text = str(path).strip()
    pure = PurePosixPath(text)
    if pure.is_absolute() or PureWindowsPath(text).drive or text.startswith(("~", "\\")):
        return "must be relative to the workspace"
    return "must stay inside the workspace" if ".." in pure.parts or ".." in text.split("\\") else None


def _check_member(scope: MissionScope) -> None:
    if scope.actor.role not in MEMBERS:
        raise NotAllowed(f"{scope.actor.role.described} may not change the comments and files of a mission todo.")


def _append(write: MissionWrite, action: PartAction, todo: MissionTodo, file: TodoFile, reason: str) -> None:
    data = {"title": todo.title, "file": file._asdict()}
    write.append(action, todo.id, reason, data, from_status=todo.status, to=todo.status)
