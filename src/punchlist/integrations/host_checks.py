"""Runs checks for third-party agents: in hooks and in the MCP server, without an event loop.

A file is read at once. A command runs only if this machine's user wrote it or if policy allows it without asking, with
the sandbox and the filtered environment of `run_command`. A rule that denies it wins, also your own. What cannot be
run within its time counts as not run, not as failed: the work may be right.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.kernel.clock import Clock, timestamp
from punchlist.kernel.text import excerpt
from punchlist.verification.file_check import run_file_check
from punchlist.verification.model import Check, CheckOutcome, CheckResult, check_result

if TYPE_CHECKING:
    from punchlist.kernel.process_runner import CapturedProcess
    from punchlist.tools.tool_session import ToolSite

MAX_SECONDS: Final = 50.0
"""For one command while an agent waits for a tool call: clients give up after 60."""
MIN_SECONDS: Final = 0.5
"""With less time left, a check is not started."""
_NOT_ALLOWED: Final = (
    "It was not run: {why}. A check runs here if a person wrote it (`punchlist todos check`) or if a rule of the "
    "policy allows its command."
)

Outcome = tuple[CheckOutcome, str]


@dataclass(frozen=True, slots=True)
class HostChecks:
    workspace: Path
    clock: Clock
    site: Callable[[], ToolSite]
    """Called for commands only: it loads the policy and the tools."""
    is_of_person: Callable[[Check], bool]

    def run(self, check: Check, seconds: float) -> CheckResult:
        """Run a check within `seconds`."""
        if check.command is not None:
            outcome, output = self._command(check, check.command, seconds)
        elif check.file is not None:
            outcome, output = run_file_check(check, self.workspace)
        else:
            outcome, output = CheckOutcome.NOT_RUN, "Only todos of a mission can be checked by a metric."
        return check_result(outcome, output, timestamp(self.clock()))

    def _command(self, check: Check, command: str, seconds: float) -> Outcome:
        started = time.monotonic()
        site = self.site()
        if problem := self._not_allowed(check, command, site):
            return CheckOutcome.NOT_RUN, _NOT_ALLOWED.format(why=problem)
        # Loading the policy has taken some of the time.
        limit = min(seconds - (time.monotonic() - started), check.timeout or MAX_SECONDS)
        return _run(command, site, limit)

    def _not_allowed(self, check: Check, command: str, site: ToolSite) -> str | None:
        """Why the command may not run; None if it may."""
        from punchlist.toolcalls.policy import Verdict
        from punchlist.tools.command import command_tool
        from punchlist.tools.tool_session import session_policy

        policy = session_policy(site, None, site.call_service())
        tool = command_tool(site.workspace, sandbox=site.settings.sandbox)
        arguments: dict[str, Any] = {"command": command}
        judged = [part.decision for part in policy.judge(tool, arguments)]
        denied = next((one for one in judged if one.verdict is Verdict.DENY and one.rule is not None), None)
        if denied is not None:
            return excerpt(denied.why, 300)
        if self.is_of_person(check):
            return None
        refused = next((one for one in judged if one.verdict is not Verdict.ALLOW), None)
        return None if refused is None else excerpt(refused.why, 300)


def _run(command: str, site: ToolSite, seconds: float) -> Outcome:
    from punchlist.kernel.process_runner import ProcessStartError
    from punchlist.tools.command import run_shell

    if seconds < MIN_SECONDS:
        return CheckOutcome.NOT_RUN, "There was no time left to run it."
    try:
        ran = run_shell(command, site.workspace, site.settings.sandbox, seconds)
    except ProcessStartError as error:
        return CheckOutcome.NOT_RUN, f"It cannot be started: {error}"
    return _outcome(ran, site.redactor.text, seconds)


def _outcome(ran: CapturedProcess, redact: Callable[[str], str], seconds: float) -> Outcome:
    printed = redact(ran.tail.decode(errors="replace")).strip()
    if ran.timed_out:
        return CheckOutcome.NOT_RUN, f"It exceeded {seconds:.0f} s and was ended.\n{printed}".strip()
    if ran.code == 0:
        return CheckOutcome.PASSED, printed
    return CheckOutcome.FAILED, f"{printed}\n(it {ran.ending(seconds)})".strip()
