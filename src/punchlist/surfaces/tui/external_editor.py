"""`$EDITOR`: write a text in the person's own editor."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import ConfigError
from punchlist.kernel.text import excerpt
from punchlist.trust import UnsafeFile, read_regular

if TYPE_CHECKING:
    from textual.app import App

MAX_BYTES: Final = 1_000_000
FALLBACKS: Final = ("nano", "vi")


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """The editor of `$VISUAL` or `$EDITOR`, else one that is usually installed."""
    chosen = environment.get("VISUAL") or environment.get("EDITOR")
    if chosen:
        try:
            command = shlex.split(chosen)
        except ValueError:
            command = []
        if command and shutil.which(command[0], path=environment.get("PATH")):
            return command
        raise ConfigError(f"The editor {excerpt(chosen)!r} was not found. Set EDITOR to the name of a program.")
    for name in FALLBACKS:
        if shutil.which(name, path=environment.get("PATH")):
            return [name]
    raise ConfigError("No editor was found. Set EDITOR to the name of a program.")


@contextmanager
def lent_terminal(app: App[Any]) -> Iterator[None]:
    """Free the terminal of an application. Whatever happens meanwhile, the application gets it back."""
    failed: Exception | None = None
    with app.suspend():
        try:
            yield
        except Exception as error:
            # Raised within `suspend`, it would leave the application without input.
            failed = error
        discard_typed_keys()
    app.refresh(layout=True)
    if failed is not None:
        raise failed


def discard_typed_keys() -> None:
    """Drop what was typed while another program had the terminal: it was not meant for this one."""
    try:
        import termios
    except ImportError:
        return
    with suppress(OSError, ValueError, termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def edit_text(
    text: str,
    environment: Mapping[str, str],
    *,
    suffix: str = ".md",
    terminal: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> str | None:
    """The text after editing; None if the editor failed, which leaves it as it was.

    `terminal` frees the terminal while the editor runs. It is not used if there is no editor.
    """
    command = editor_command(environment)
    descriptor, name = tempfile.mkstemp(prefix="punchlist-", suffix=suffix)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        try:
            with terminal(), _own_interrupts():
                done = subprocess.run([*command, name], env=dict(environment), check=False)
        except OSError as error:
            raise ConfigError(f"The editor {command[0]} could not be started ({error.strerror}).") from error
        if done.returncode != 0:
            return None
        edited = read_regular(path, MAX_BYTES).decode("utf-8", errors="replace")
    except UnsafeFile as problem:
        raise ConfigError(f"The edited text cannot be used: the file {problem}.") from None
    finally:
        path.unlink(missing_ok=True)
    return edited.removesuffix("\n")


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Ctrl+C goes to the editor and to this process; it is meant for the editor."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
