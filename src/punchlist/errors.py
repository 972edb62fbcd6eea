"""Everything Punchlist raises on purpose, as one tree.

A message says what happened, to what, and what to do next; surfaces print it as it is.
`code` is what programs match on (`--json`, tool results): it never changes for a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

_MOST_TOLD = 10


class PunchlistError(Exception):
    """Root of the tree."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    """What the command line exits with."""


class InvalidInput(PunchlistError):
    """The caller sent something that breaks a rule; nothing was changed."""

    code = "invalid_input"

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        told = self.problems[:_MOST_TOLD]
        if len(self.problems) > len(told):
            told.append(f"… and {len(self.problems) - len(told)} more problems")
        super().__init__("\n".join(told))


class NotFound(PunchlistError):
    """The thing named does not exist in the caller's scope."""

    code = "not_found"


class NotAllowed(PunchlistError):
    """The caller's role may not do this."""

    code = "not_allowed"


class IllegalTransition(PunchlistError):
    """The lifecycle has no such step from the present state."""

    code = "illegal_transition"


class Conflict(PunchlistError):
    """Somebody else was first; read again and retry."""

    code = "conflict"


class ConfigError(PunchlistError):
    """A setting is wrong."""

    code = "config"


class MissingExtra(PunchlistError):
    """An optional dependency is not installed."""

    code = "missing_extra"
    exit_code = 2

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} is not installed. Install it with: pip install 'punchlist[{extra}]'")


class StoreError(PunchlistError):
    """The database could not do what was asked; nothing was half written."""

    code = "store"


class StoreUnavailable(StoreError):
    """No access: full disk, read-only, I/O error, server gone."""

    code = "store_unavailable"


class StoreBusy(StoreError):
    """Other writers kept the database longer than we were willing to wait."""

    code = "store_busy"


class StoreDamaged(StoreError):
    """What is stored is not what was written."""

    code = "store_damaged"

    @classmethod
    def not_as_written(cls, what: str) -> Self:
        return cls(
            f"{what} is not what was written. Run `punchlist db check` for the extent; "
            "`punchlist db restore BACKUP` goes back to a good copy."
        )


class SchemaTooOld(StoreError):
    """A development version wrote the database; its schema cannot be upgraded."""

    code = "schema_too_old"


class SchemaTooNew(StoreError):
    """The database was written by a newer Punchlist."""

    code = "schema_too_new"
