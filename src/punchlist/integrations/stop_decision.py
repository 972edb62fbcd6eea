"""What a stop hook answers, and what the person is told about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from punchlist.agent.continuation import Continue, Decision, OpenItem, Reason, Stop, Wait, ending_text
from punchlist.kernel.text import visible_block

GOAL_NOT_MET: Final = "the goal of this session is not met"


@dataclass(frozen=True, slots=True)
class StopDecision:
    decision: Decision
    open_items: tuple[OpenItem, ...] = ()
    pause: float = 0.0
    """Seconds to wait before the agent continues (C4); doubles while nothing changes."""
    silent: bool = False
    """The person gets no notice."""
    notes: tuple[str, ...] = ()
    """What the person is told besides, such as checks that were not run."""
    questioned: tuple[str, ...] = ()
    """The ids of the completed items that the agent is asked about."""

    @property
    def prompt(self) -> str | None:
        """What the agent is told to do next; None if it may stop."""
        return self.decision.prompt if isinstance(self.decision, Continue) else None

    @property
    def is_goal_unmet(self) -> bool:
        """The agent may stop although its goal is not met."""
        return isinstance(self.decision, Stop) and self.decision.why.startswith(GOAL_NOT_MET)

    def notice(self) -> str:
        """What the person is told about a stop with open items."""
        match self.decision:
            case Wait(on):
                text = ending_text(Reason.WAITING, "; ".join(on), ())
            case Stop(reason, why) if reason is not Reason.COMPLETED and not self.silent:
                text = ending_text(reason, why, self.open_items)
            case _:
                text = ""
        return visible_block("\n".join(part for part in (text, *self.notes) if part))
