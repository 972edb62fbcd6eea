"""Entry point of the program."""

from __future__ import annotations

import gc
import sys

from punchlist.services import Services


def main() -> None:
    # Imports create many objects and no garbage; collecting at the default threshold costs a tenth of a short command.
    gc.set_threshold(50_000, 20, 20)
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        # Agents call hooks at every step, so this path does not even import Typer.
        from punchlist.surfaces.hooks.main import run

        run(Services, sys.argv[2:])
    from punchlist.surfaces.cli.main import start

    start(Services)
