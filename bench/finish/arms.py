"""The six arms. Each is the one before it plus one part; all have the same work tools.

Arms are settings of an `AgentDefinition`. Where the product has no setting, because nobody would want it (a list that
the model does not see), the request is changed on its way to the model.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from punchlist.agent.definitions import BUILT_IN, AgentDefinition
from punchlist.models.model import (
    Message,
    Model,
    ModelInfo,
    ModelRequest,
    Reply,
    TextListener,
    ToolOffer,
    UserText,
)

_STATE: Final = re.compile(r"<state>.*?</state>\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Arm:
    name: str
    title: str
    agent: AgentDefinition | None = None
    """None for the bare loop."""
    state: bool = True
    """The list is in view."""
    checks: bool = False
    """Items can carry checks."""


def arms(lists: str = "plan") -> dict[str, Arm]:
    """`lists` is the kind of list that the agent keeps: plan or checklist."""
    name = "supervisor" if lists == "plan" else "coder"
    driven = replace(BUILT_IN[name], lists=lists, verify=False, todo_driven=True)
    quiet = replace(driven, todo_driven=False, remind_after=None)
    found = (
        Arm("bare", "bare loop"),
        Arm("tool", "list as a tool", quiet, state=False),
        Arm("view", "list in view", quiet),
        Arm("continue", "+ continuation", driven),
        Arm("verify", "+ evidence and checks", replace(driven, verify=True), checks=True),
        Arm("drive", "drive", replace(driven, verify=True, strategy="drive"), checks=True),
    )
    return {arm.name: arm for arm in found}


class ArmView:
    """The model of an arm: hides the list, or the checks, from the model where the arm does not have them."""

    def __init__(self, model: Model, arm: Arm) -> None:
        self._model = model
        self._arm = arm
        self._offers: tuple[int, Sequence[ToolOffer]] = (0, ())

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    async def ask(self, request: ModelRequest, on_text: TextListener | None = None) -> Reply:
        messages, tools = request.messages, request.tools
        if not self._arm.state:
            messages = [changed for message in messages if (changed := _without_state(message)) is not None]
        if not self._arm.checks and tools:
            if self._offers[0] != id(tools):
                self._offers = (id(tools), [_without_checks(tool) for tool in tools])
            tools = self._offers[1]
        return await self._model.ask(replace(request, messages=messages, tools=tools), on_text)


def _without_state(message: Message) -> Message | None:
    if not isinstance(message, UserText) or "<state>" not in message.text:
        return message
    text = _STATE.sub("", message.text).strip()
    return UserText(text) if text else None


def _without_checks(tool: ToolOffer) -> ToolOffer:
    schema = copy.deepcopy(dict(tool.input_schema))
    _remove(schema, "check")
    return replace(tool, input_schema=schema)


def _remove(schema: Mapping[str, Any], name: str) -> None:
    properties = schema.get("properties")
    if isinstance(properties, dict):
        properties.pop(name, None)
        for each in properties.values():
            _remove(each, name)
    if isinstance(schema.get("items"), Mapping):
        _remove(schema["items"], name)
