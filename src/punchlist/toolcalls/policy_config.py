"""Reads the policy from `punchlist.toml`.

[policy]
mode = "default"             # plan | default | auto-edit | yolo
expiry = "24h"               # how long a question waits for an answer; default: no limit
on_expiry = "deny"           # wait | deny | escalate

[[policy.rules]]             # the first that matches wins
decision = "allow"           # allow | ask | deny
tool = "run_command"         # a name, or a pattern with *
command = ["git status", "npm test"]
arguments = { path = "docs/*" }
mode = ["default"]
why = "harmless"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from punchlist.kernel.settings_table import SettingsTable
from punchlist.toolcalls.approvals import ApprovalExpiry, OnExpiry
from punchlist.toolcalls.policy import Mode, Rule, Verdict

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
MAX_RULES: Final = 1_000


@dataclass(frozen=True, slots=True)
class PolicySettings:
    mode: Mode | None = None
    expiry: ApprovalExpiry | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def permissions(self) -> list[str]:
        """The settings that allow more than the default does."""
        allowing = [str(rule) for rule in self.rules if rule.verdict is Verdict.ALLOW]
        return [*allowing, f"mode {self.mode}"] if self.mode in (Mode.AUTO_EDIT, Mode.YOLO) else allowing

    def without_permissions(self) -> PolicySettings:
        """Without the rules that allow: the part that applies from an untrusted file."""
        kept = tuple(rule for rule in self.rules if rule.verdict is not Verdict.ALLOW)
        return replace(self, rules=kept, mode=Mode.PLAN if self.mode is Mode.PLAN else None)


def merge_layers(layers: Sequence[PolicySettings]) -> PolicySettings:
    """The first mode and expiry that are set, and the rules of all layers in order."""
    return PolicySettings(
        mode=next((layer.mode for layer in layers if layer.mode is not None), None),
        expiry=next((layer.expiry for layer in layers if layer.expiry is not None), None),
        rules=tuple(rule for layer in layers for rule in layer.rules),
    )


def read_policy(table: SettingsTable) -> PolicySettings:
    table.check_keys("mode", "expiry", "on_expiry", "rules")
    rules = table.tables("rules")
    if len(rules) > MAX_RULES:
        raise table.error("rules", f"at most {MAX_RULES} allowed, got {len(rules)}")
    mode = Mode(table.text("mode", one_of=list(Mode))) if "mode" in table.content else None
    return PolicySettings(mode, _expiry(table), tuple(map(_rule, rules)))


def _expiry(table: SettingsTable) -> ApprovalExpiry | None:
    if "expiry" not in table.content:
        if "on_expiry" in table.content:
            raise table.error("on_expiry", 'needs an expiry, such as "24h"')
        return None
    written = table.text("expiry")
    found = re.fullmatch(r"(\d{1,6})\s*([smhd])", written.strip())
    if not found or not int(found[1]):
        raise table.error("expiry", 'must be a time such as "30m", "24h" or "7d"')
    then = OnExpiry(table.text("on_expiry", OnExpiry.DENY, one_of=list(OnExpiry)))
    return ApprovalExpiry(then, timedelta(**{_UNITS[found[2]]: int(found[1])}))


def _rule(table: SettingsTable) -> Rule:
    table.check_keys("decision", "tool", "command", "arguments", "mode", "why")
    if "decision" not in table.content:
        raise table.error("decision", f"is required, one of {', '.join(Verdict)}")
    commands = tuple(tuple(command.split()) for command in table.text_list("command"))
    if not all(commands):
        raise table.error("command", "must not be empty")
    modes = table.text_list("mode")
    if unknown := [mode for mode in modes if mode not in list(Mode)]:
        raise table.error("mode", f"must be of {', '.join(Mode)}, got {unknown[0]!r}")
    return Rule(
        Verdict(table.text("decision", one_of=list(Verdict))),
        table.text("tool", "*"),
        commands,
        table.text_map("arguments"),
        frozenset(map(Mode, modes)) or frozenset(Mode),
        why=table.text("why"),
        source=f"{table.path.name}, {table.name}",
    )
