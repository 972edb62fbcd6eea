"""The lifecycle of a list item: a table of (state, action) -> state, and the roles allowed to take each action.

Services call `advance` before they write. The UPDATE repeats the source state in its WHERE clause, so that a step that
was legal when it was decided is still legal when it is written. The diagrams in the documentation are generated from
the same tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from punchlist.errors import IllegalTransition, NotAllowed
from punchlist.kernel.events import Role

NEW: Final = "(new)"
"""The state before an item exists."""

ALL_ROLES: Final = frozenset(Role) - {Role.VIEWER}
"""All roles that can change anything."""
ACCEPTERS: Final = frozenset({Role.PERSON, Role.LEAD})
"""The roles that accept a completed item (V4)."""

S = TypeVar("S", bound=StrEnum)
A = TypeVar("A", bound=StrEnum)


@dataclass(frozen=True)
class Lifecycle(Generic[S, A]):
    name: str
    table: Mapping[tuple[S | str, A], S]
    allowed: Mapping[A, Collection[Role]]

    def advance(self, state: S | str, action: A, by: Role) -> S:
        """The state after `action`; raises an error that names the states from which it is possible."""
        if by not in self.allowed[action]:
            self.check_role(action, by)
        try:
            return self.table[state, action]
        except KeyError:
            refused = f"Cannot {action} {self._name_with_article} that is {state}"
            steps = {source: target for (source, other), target in self.table.items() if other == action}
            steps.pop(NEW, None)
            if state in steps.values():
                raise IllegalTransition(f"{refused} already.") from None
            if all(
                self.table[state, other] == state for other in self.actions_from(state) if by in self.allowed[other]
            ):
                raise IllegalTransition(f"{refused}: it has ended.") from None
            needed = f"; it must be {' or '.join(steps)}" if steps else ""
            raise IllegalTransition(f"{refused}{needed}.") from None

    def check_role(self, action: A, by: Role) -> None:
        roles = self.allowed[action]
        if by not in roles:
            who = " or ".join(sorted(roles)) or "no role"
            raise NotAllowed(f"{by.described} may not {action} {self._name_with_article}; {who} may.")

    @property
    def _name_with_article(self) -> str:
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    def actions_from(self, state: S | str) -> list[A]:
        return [action for source, action in self.table if source == state]

    def is_final(self, state: S | str) -> bool:
        """Whether no action leads to another state."""
        return all(target == state for (source, _), target in self.table.items() if source == state)

    def mermaid(self) -> str:
        """The table as a Mermaid state diagram."""
        lines = ["stateDiagram-v2"]
        for (source, action), target in self.table.items():
            start = "[*]" if source == NEW else source
            lines.append(f"    {start} --> {target}: {action}")
        states = dict.fromkeys(self.table.values())
        lines += [f"    {state} --> [*]" for state in states if self.is_final(state)]
        return "\n".join(lines)
