"""What the composer reads and changes: completions, and the queued messages of a session. Its methods may block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from punchlist.conversations.message_queue import MessageQueue
from punchlist.surfaces.tui.completion import Completion, item_completions, path_completions
from punchlist.surfaces.tui.workspace_files import WorkspaceFiles

if TYPE_CHECKING:
    from punchlist.app import Services
    from punchlist.conversations.model import QueuedMessage, Scope
    from punchlist.surfaces.tui.slash_commands.model import SlashContext
    from punchlist.surfaces.tui.slash_commands.registry import SlashRegistry


class ComposerSource(Protocol):
    def slash_completions(self, line: str) -> Sequence[Completion]: ...

    def paths(self, word: str) -> Sequence[Completion]: ...

    def items(self, word: str) -> Sequence[Completion]: ...

    def queued(self) -> Sequence[QueuedMessage]: ...

    def edit_queued(self, id: str, text: str) -> None: ...

    def remove_queued(self, id: str) -> None: ...


class SessionSource:
    """The source for one session. `slash_context` gives the context of the moment."""

    def __init__(
        self,
        services: Services,
        scope: Scope,
        registry: Callable[[], SlashRegistry],
        slash_context: Callable[[], SlashContext],
        files: WorkspaceFiles | None = None,
    ) -> None:
        self._services = services
        self._scope = scope
        self._registry = registry
        self._slash_context = slash_context
        self._files = files or WorkspaceFiles(services.workspace)

    def slash_completions(self, line: str) -> Sequence[Completion]:
        found = self._registry().complete(line, self._slash_context())
        return [
            Completion(each.line, each.label, each.description, complete=not each.line.endswith(" ")) for each in found
        ]

    def paths(self, word: str) -> Sequence[Completion]:
        return path_completions(self._files.match(word))

    def items(self, word: str) -> Sequence[Completion]:
        return item_completions(self._services.todos.list(self._scope).items, word)

    def queued(self) -> Sequence[QueuedMessage]:
        return self._queue.pending(self._scope.conversation_id)

    def edit_queued(self, id: str, text: str) -> None:
        self._queue.edit(self._scope, id, text)

    def remove_queued(self, id: str) -> None:
        self._queue.withdraw(self._scope, id)

    @property
    def _queue(self) -> MessageQueue:
        return MessageQueue(self._services.store, self._services.conversations)
