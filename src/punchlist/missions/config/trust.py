"""Which commands, addresses and functions of a mission may run: only those the person has trusted.

They are read from the trusted text of the file, not from the rows created from it, so that write access to the
database does not allow running programs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from punchlist.errors import InvalidInput
from punchlist.kernel.events import canonical_json
from punchlist.missions.model import Mission, MissionTodo

if TYPE_CHECKING:
    from punchlist.missions.config.model import MissionConfig

IsTrusted = Callable[[Mission], bool]
"""Whether the person has trusted what the file of a mission runs."""
COLLECTORS_NEEDING_TRUST: Final = frozenset({"command", "http", "python"})
"""Collector types that run code on this machine or send requests (M7)."""


def trust_name(mission_slug: str, workspace: Path) -> str:
    """The key under which a mission file is trusted. It includes the folder, because the same command can mean another
    program elsewhere."""
    return f"mission:{mission_slug}@{workspace.resolve()}"


def executable_text(config: MissionConfig) -> str:
    """Everything in a mission file that runs, requests or calls something, as text. The person trusts this text: it
    changes with every command, address, header, function and check, and with nothing else in the file."""
    collectors = {
        metric.slug: dict(metric.collector)
        for pillar in config.pillars
        for metric in pillar.metrics
        if metric.collector["type"] in COLLECTORS_NEEDING_TRUST
    }
    return canonical_json(
        {"collectors": collectors, "checks": {name: dict(each) for name, each in config.checks.items()}}
    )


def trusted_text(mission: Mission) -> str | None:
    """`executable_text` of the stored file; None when it cannot be read."""
    # Imported here: pydantic is optional and slow to load.
    from punchlist.missions.config.file import parse_mission

    try:
        return executable_text(parse_mission(mission.source))
    except InvalidInput:
        return None


def check_name(todo: MissionTodo) -> str:
    """The key under which a person's command check of a todo is trusted."""
    return f"check:{todo.id}"


def trusted_config(mission: Mission, is_trusted: IsTrusted) -> MissionConfig | None:
    # Imported here: pydantic is optional and slow to load.
    from punchlist.missions.config.file import parse_mission

    return parse_mission(mission.source) if is_trusted(mission) else None


def trusted_collector(config: MissionConfig | None, metric_slug: str) -> Mapping[str, Any] | None:
    metrics = (metric for pillar in (config.pillars if config else ()) for metric in pillar.metrics)
    return next((metric.collector for metric in metrics if metric.slug == metric_slug), None)


def actions_needing_trust(config: MissionConfig) -> list[str]:
    """What the file runs, requests or calls once the person has trusted it."""
    metrics = [metric for pillar in config.pillars for metric in pillar.metrics]
    return [
        *(
            f"metric {metric.slug}: {_collector_action(metric.collector)}"
            for metric in metrics
            if metric.collector["type"] in COLLECTORS_NEEDING_TRUST
        ),
        *(f"check {name}: runs {shlex.join(check['command'])}" for name, check in config.checks.items()),
    ]


def _collector_action(collector: Mapping[str, Any]) -> str:
    match collector["type"]:
        case "command":
            return f"runs {shlex.join(collector['command'])}"
        case "http":
            return f"requests {collector['url']}{_headers_sent(collector.get('headers', {}))}"
    return f"calls {collector['entryPoint']}"


def _headers_sent(headers: Mapping[str, str]) -> str:
    """Names the headers, and above all the secrets in them."""
    secrets = [name for value in headers.values() for name in re.findall(r"\$\{(\w+)\}", value)]
    if secrets:
        return f", sending your {', '.join(secrets)} (headers {', '.join(headers)})"
    return f", with the headers {', '.join(headers)}" if headers else ""
