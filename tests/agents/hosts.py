"""How each program is run without a person, with a model of ours, in folders of its own.

What a person has set up already (the model, trust in the project) is in the home; what `punchlist install`
changes is in the project, which has settings of its own before.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.agents import served
from tests.agents.programs import Program
from tests.agents.scripted import Wire
from tests.agents.wires import chat, gemini, messages, responses

PROMPT: Final = "Write a parser, and test it."
_SCHEMA: Final = "https://opencode.ai/config.json"
ENOUGH: Final = 100.0
"""Seconds that a program may take from its start to its end."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a program runs."""

    program: Program
    path: Path
    project: Path
    home: Path

    def environment(self, **more: str) -> dict[str, str]:
        """Of this process only what every program needs: nothing that was set for another agent."""
        kept = {
            name: os.environ[name] for name in ("PATH", "LANG", "TERM", "NODE_EXTRA_CA_CERTS") if name in os.environ
        }
        return {**kept, "HOME": str(self.home), **more}

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, arguments: list[str], environment: Mapping[str, str]) -> str:
        """All that it wrote."""
        command = [str(self.path), *arguments]
        done = subprocess.run(
            command,
            cwd=self.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ENOUGH,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


class Host(Protocol):
    wire: Wire
    own_files: tuple[str, ...]
    """What it puts into a project by itself."""

    def settle(self, setting: Setting) -> None:
        """Put there what a person has before Punchlist comes."""

    def run(self, setting: Setting, url: str) -> str:
        """Give it the prompt, with the model at this address; what it wrote until it ended."""


class Codex:
    wire: Wire = responses
    own_files: tuple[str, ...] = ()

    def settle(self, setting: Setting) -> None:
        setting.write(setting.project / ".codex" / "config.toml", '# Ours.\nmodel_reasoning_summary = "none" # short\n')
        trusted = f'# Mine.\n[projects."{setting.project}"]\ntrust_level = "trusted"\n'
        setting.write(setting.home / ".codex" / "config.toml", trusted)

    def run(self, setting: Setting, url: str) -> str:
        provider = {"name": "scripted", "base_url": f"{url}/v1", "wire_api": "responses", "env_key": "SCRIPTED_KEY"}
        chosen = {"model": "scripted", "model_provider": "scripted"}
        chosen |= {f"model_providers.scripted.{key}": value for key, value in provider.items()}
        # Accepting hooks is for a person at the terminal; this says that one has.
        arguments = ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
        for key, value in chosen.items():
            arguments += ["-c", f"{key}={json.dumps(value)}"]
        environment = setting.environment(CODEX_HOME=str(setting.home / ".codex"), SCRIPTED_KEY="secret")
        return setting.run([*arguments, PROMPT], environment)


class Gemini:
    wire: Wire = gemini
    own_files: tuple[str, ...] = ()

    def settle(self, setting: Setting) -> None:
        setting.write(setting.project / ".gemini" / "settings.json", '{\n  // Ours.\n  "ui": {"hideTips": true}\n}\n')
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        }
        setting.write(setting.home / ".gemini" / "settings.json", json.dumps(settings))

    def run(self, setting: Setting, url: str) -> str:
        environment = setting.environment(
            GEMINI_API_KEY="secret", GOOGLE_GEMINI_BASE_URL=url, GEMINI_CLI_TRUST_WORKSPACE="true"
        )
        return setting.run(["-p", PROMPT, "--approval-mode", "yolo", "-m", "gemini-2.5-flash"], environment)


class ClaudeCode:
    wire: Wire = messages
    own_files: tuple[str, ...] = ()

    def __init__(self, model: str | None = None) -> None:
        """Which tools it offers depends on the model."""
        self._model = ["--model", model] if model else []

    def settle(self, setting: Setting) -> None:
        setting.write(setting.project / ".claude" / "settings.json", '{"env": {"OURS": "1"}}')

    def run(self, setting: Setting, url: str) -> str:
        environment = setting.environment(
            ANTHROPIC_BASE_URL=url,
            ANTHROPIC_API_KEY="secret",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_AUTOUPDATER="1",
            # Its tools at once, not only when the model has searched for them.
            ENABLE_TOOL_SEARCH="false",
            # As root it works without asking only where it is told that nothing can break.
            IS_SANDBOX="1",
        )
        return setting.run(["-p", PROMPT, *self._model, "--permission-mode", "bypassPermissions"], environment)


class OpenCode:
    wire: Wire = chat
    # As soon as there is a folder for plugins, it puts its own package into it.
    own_files: tuple[str, ...] = ("node_modules", "package.json", "package-lock.json", "bun.lock", ".gitignore")

    def settle(self, setting: Setting) -> None:
        setting.write(
            setting.project / "opencode.json",
            f'{{\n  "$schema": "{_SCHEMA}",\n  // Ours.\n  "share": "disabled",\n}}\n',
        )

    def run(self, setting: Setting, url: str) -> str:
        # `opencode run` leaves as soon as it is idle, before anybody can say more.
        return served.run([str(setting.path)], setting.project, self.environment(setting, url), PROMPT, ENOUGH)

    def environment(self, setting: Setting, url: str) -> dict[str, str]:
        model = {"name": "scripted", "tool_call": True, "limit": {"context": 100_000, "output": 8_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1", "apiKey": "secret"},
            "models": {"scripted": model},
        }
        settings = {
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "autoupdate": False,
            "permission": "allow",
            "provider": {"scripted": provider},
        }
        return setting.environment(
            OPENCODE_CONFIG_CONTENT=json.dumps(settings),
            OPENCODE_DISABLE_MODELS_FETCH="1",
            # It would fetch a package for plugins first, which takes a minute; ours needs none.
            npm_config_offline="true",
        )


HOSTS: Final[dict[str, Host]] = {
    "claude-code": ClaudeCode(),
    "codex": Codex(),
    "gemini": Gemini(),
    "opencode": OpenCode(),
}
