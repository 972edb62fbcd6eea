"""The exceptions of Punchlist.

A message says what happened, to what, and what to do next; surfaces print it unchanged. Programs match on `code`
(`--json`, tool results), which never changes for a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

_MAX_SHOWN = 10


class PunchlistError(Exception):
    """The base class."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    """What the command line exits with."""


class InvalidInput(PunchlistError):
    """The input breaks a rule; nothing was changed."""

    code = "invalid_input"

    def __init__(self, problems: Sequence[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        shown = self.problems[:_MAX_SHOWN]
        if len(self.problems) > len(shown):
            shown.append(f"… and {len(self.problems) - len(shown)} more problems")
        super().__init__("\n".join(shown))


class NotFound(PunchlistError):
    """The object does not exist in the caller's scope."""

    code = "not_found"


class NotAllowed(PunchlistError):
    """The caller's role may not do this."""

    code = "not_allowed"


class IllegalTransition(PunchlistError):
    """The lifecycle does not allow this action in the current state."""

    code = "illegal_transition"


class CheckFailed(PunchlistError):
    """The check of a completed item failed; the item is open again."""

    code = "check_failed"


class Conflict(PunchlistError):
    """Another writer was first; read again and retry."""

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
    """The database failed; nothing was partially written."""

    code = "store"


class StoreUnavailable(StoreError):
    """No access: full disk, read-only, I/O error, server unreachable."""

    code = "store_unavailable"


class StoreBusy(StoreError):
    """Other writers held the lock longer than the busy timeout."""

    code = "store_busy"


class StoreDamaged(StoreError):
    """Stored data is not what was written."""

    code = "store_damaged"

    @classmethod
    def not_as_written(cls, what: str) -> Self:
        return cls(
            f"{what} is not what was written. Run `punchlist db check` for the extent, "
            "and `punchlist db restore BACKUP` to restore a backup."
        )


class SchemaTooOld(StoreError):
    """A development version wrote the database; its schema cannot be upgraded."""

    code = "schema_too_old"


class SchemaTooNew(StoreError):
    """A newer Punchlist wrote the database."""

    code = "schema_too_new"
