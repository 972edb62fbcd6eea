"""Turns a command into one that runs in a sandbox: bubblewrap on Linux, sandbox-exec on macOS.

The workspace and the `writable` folders can be written; everything else is read-only, and there is no network unless it
is allowed. On Linux /tmp is private, the command has its own process table, and /run is empty: the sockets of
Docker and of the desktop session in it would be a way out. A command that cannot be put into the sandbox does not run.

The sandbox limits damage. It hides only the key that signs the user's answers; other files that the user can read, the
command can read too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from punchlist.kernel.process_runner import ProcessStartError
from punchlist.tools.sandbox import SandboxSettings
from punchlist.trust import Trust

PROBE_SECONDS: Final = 10.0
# With the network, names are resolved through files and sockets in these folders.
_NAME_SERVICES: Final = ("/run/systemd/resolve", "/run/resolvconf", "/run/nscd")
_INSTALL: Final = "Install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`)"
_OR_OFF: Final = 'or set `commands = "off"` in the [sandbox] table of your settings'


class SandboxUnavailable(ProcessStartError):
    """The sandbox cannot be used; the message says why and what to do."""


def sandboxed_if_on(
    arguments: Sequence[str], settings: SandboxSettings, folder: Path, also: Sequence[Path] = ()
) -> Sequence[str]:
    return sandboxed(arguments, settings, folder, also) if settings.is_on else arguments


def sandboxed(
    arguments: Sequence[str], settings: SandboxSettings, folder: Path, also: Sequence[Path] = (), system: str = ""
) -> list[str]:
    """The command line that runs `arguments` in the sandbox. `also` are further writable folders."""
    system = system or sys.platform
    writable = tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in (folder, *also, *settings.writable)))
    network = bool(settings.network)
    hidden = (Path(os.path.realpath(Trust.of_user(os.environ).key_file)),)
    if system == "darwin":
        # /tmp cannot be private there.
        writable = (*writable, Path(os.path.realpath(tempfile.gettempdir())))
        profile = macos_profile(writable, network, hidden)
        return [_program("sandbox-exec", writable, system), "-p", profile, "--", *arguments]
    if not system.startswith("linux"):
        raise SandboxUnavailable(f"There is no sandbox for {system}. Commands do not run; {_OR_OFF[3:]}.")
    program = _program("bwrap", writable, system)
    if problem := _probe(program):
        raise SandboxUnavailable(
            f"The sandbox cannot be started ({problem}). Commands do not run. Allow user namespaces on this system, "
            f"{_OR_OFF}."
        )
    options = bubblewrap_options(writable, network, hidden)
    return [program, *options, "--chdir", str(writable[0]), "--", *arguments]


def bubblewrap_options(writable: Sequence[Path], network: bool, hidden: Sequence[Path] = ()) -> list[str]:
    options = ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    options += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not network:
        options.append("--unshare-net")
    options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for private in ("/tmp", "/var/tmp", "/run"):
        if os.path.isdir(private) and not os.path.islink(private):
            options += ["--tmpfs", private]
    if network:
        for folder in _NAME_SERVICES:
            options += ["--ro-bind-try", folder, folder]
    # After the private folders: the workspace may be inside one of them.
    for folder in map(str, writable):
        options += ["--bind-try", folder, folder]
    for file in filter(os.path.exists, map(str, hidden)):
        options += ["--ro-bind", "/dev/null", file]
    return [*options, "--setenv", "TMPDIR", "/tmp"]


def macos_profile(writable: Sequence[Path], network: bool, hidden: Sequence[Path] = ()) -> str:
    folders = " ".join(f"(subpath {_quoted(str(folder))})" for folder in writable)
    rules = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f"(allow file-write* {folders})",
        '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))',
        *(f"(deny file-read* file-write* (literal {_quoted(str(file))}))" for file in hidden),
    ]
    return "".join(rules if network else [*rules, "(deny network*)"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _program(name: str, writable: Sequence[Path], system: str) -> str:
    """The full path. A program that commands can replace is not used."""
    found = shutil.which(name)
    real = Path(os.path.realpath(found)) if found else None
    if found is None or real is None or any(real.is_relative_to(folder) for folder in writable):
        hint = f"{_INSTALL}, {_OR_OFF}" if system.startswith("linux") else f"It is part of macOS: check PATH, {_OR_OFF}"
        raise SandboxUnavailable(f"The sandbox needs {name}, which is not installed. Commands do not run. {hint}.")
    return os.path.abspath(found)


@cache
def _probe(program: str) -> str:
    """Why an empty sandbox cannot be started; empty if it can. Asked once per process."""
    options = bubblewrap_options((), network=False)
    try:
        done = subprocess.run(
            [program, *options, "--", "true"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit code {done.returncode}")
