"""A goal: acceptance criteria, with checks that decide about some of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from punchlist.verification.model import Check, check_from_json, check_json


@dataclass(frozen=True, slots=True)
class Goal:
    criteria: str
    checks: tuple[Check, ...] = ()
    judge_model: str | None = None
    """The model that judges the criteria for a third-party agent, which otherwise confirms them itself."""

    @property
    def text(self) -> str:
        """What the agent is told."""
        return f"The work is accepted when this is true:\n\n{self.criteria}"

    def encode(self) -> str:
        """The form in which it is stored with its turn or session."""
        checks = [{"check": check_json(check), "byPerson": check.by_person} for check in self.checks]
        judge = {"judgeModel": self.judge_model} if self.judge_model else {}
        return json.dumps({"criteria": self.criteria, "checks": checks, **judge}, ensure_ascii=False)


def decode_goal(stored: str) -> Goal:
    data = json.loads(stored)
    checks = tuple(check_from_json(each["check"], each["byPerson"]) for each in data["checks"])
    return Goal(data["criteria"], checks, data.get("judgeModel"))
