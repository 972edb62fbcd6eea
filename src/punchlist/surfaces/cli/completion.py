"""`punchlist --install-completion`: as Typer does it, after a confirmation."""

from __future__ import annotations

import sys
from typing import Any, Final

import typer

from punchlist.errors import NotAllowed
from punchlist.surfaces.cli.agent_guard import refuse_for_agents
from punchlist.surfaces.cli.context import confirm

_WRITTEN: Final = {
    "bash": "~/.bash_completions/punchlist.sh and ~/.bashrc",
    "zsh": "~/.zfunc/_punchlist and ~/.zshrc",
    "fish": "~/.config/fish/completions/punchlist.fish",
}


def install_completion(context: typer.Context, parameter: Any, *, yes: bool) -> Any:
    """Write the completion of the current shell, and end the program."""
    from shellingham import ShellDetectionFailure, detect_shell  # type: ignore[import-untyped]
    from typer.completion import install_callback

    refuse_for_agents("--install-completion")
    try:
        shell: str = detect_shell()[0]
    except ShellDetectionFailure:
        raise NotAllowed(
            "The shell is not known. Use --show-completion in it, and add the text to its settings."
        ) from None
    if not yes:
        written = _WRITTEN.get(shell, "its settings in your home folder")
        if not sys.stdin.isatty():
            raise NotAllowed(
                f"Completion for {shell} changes {written}. There is no terminal to ask, so nothing was changed. "
                "Confirm with --yes."
            )
        confirm(f"Install completion for {shell}? It changes {written}.")
    return install_callback(context, parameter, shell)
