"""Punchlist: the todo list that AI agents finish.

The public names. They are loaded when they are first used, so that `import punchlist` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from punchlist.agent.continuation import Limits, Reason
    from punchlist.agent.events import (
        CallChanged,
        Continued,
        ListChanged,
        NoteAdded,
        ReplyReceived,
        TextDelta,
        ToolOutput,
        TurnEnded,
        TurnStarted,
    )
    from punchlist.checklist.manager import TodoManager
    from punchlist.checklist.service import Checklists
    from punchlist.conversations.message_queue import MessageQueue
    from punchlist.conversations.model import Scope, TurnScope
    from punchlist.conversations.service import Conversations
    from punchlist.errors import PunchlistError
    from punchlist.kernel.actors import Actor, Role
    from punchlist.kernel.cancel_signal import CancelSignal
    from punchlist.library import Agent, RunResult
    from punchlist.missions.config.file import parse_mission
    from punchlist.missions.metrics.service import Metrics
    from punchlist.missions.model import MissionScope, NewMissionTodo
    from punchlist.missions.service import Missions
    from punchlist.missions.todos.service import MissionTodos
    from punchlist.plan.repository import TurnTodoRepository
    from punchlist.plan.service import Plans
    from punchlist.runs.service import Runs
    from punchlist.storage.open import open_store
    from punchlist.storage.store import Store
    from punchlist.toolcalls.approval_store import Approvals
    from punchlist.toolcalls.approvals import ApprovalAnswer, ApprovalOutcome
    from punchlist.toolcalls.batch_writer import BatchWriter
    from punchlist.toolcalls.lifecycle import CallStatus
    from punchlist.toolcalls.listeners import Listeners
    from punchlist.toolcalls.model import ToolCallRequest
    from punchlist.toolcalls.policy import Mode, Policy, Rule, Verdict
    from punchlist.toolcalls.scheduler import CoreToolScheduler
    from punchlist.toolcalls.service import ToolCallService
    from punchlist.toolcalls.tool import Effect, Resources, ToolContext, ToolFailure, TransientFailure
    from punchlist.tools.function_tool import tool
    from punchlist.tools.tool_session import native_tools
    from punchlist.tools.workspace import Workspace

_HOMES = {
    "Actor": "punchlist.kernel.actors",
    "Agent": "punchlist.library",
    "ApprovalAnswer": "punchlist.toolcalls.approvals",
    "Approvals": "punchlist.toolcalls.approval_store",
    "CallChanged": "punchlist.agent.events",
    "CancelSignal": "punchlist.kernel.cancel_signal",
    "Checklists": "punchlist.checklist.service",
    "Continued": "punchlist.agent.events",
    "Conversations": "punchlist.conversations.service",
    "CoreToolScheduler": "punchlist.toolcalls.scheduler",
    "Effect": "punchlist.toolcalls.tool",
    "ToolCallService": "punchlist.toolcalls.service",
    "Limits": "punchlist.agent.continuation",
    "ListChanged": "punchlist.agent.events",
    "Listeners": "punchlist.toolcalls.listeners",
    "MessageQueue": "punchlist.conversations.message_queue",
    "Metrics": "punchlist.missions.metrics.service",
    "MissionScope": "punchlist.missions.model",
    "MissionTodos": "punchlist.missions.todos.service",
    "Missions": "punchlist.missions.service",
    "Mode": "punchlist.toolcalls.policy",
    "NewMissionTodo": "punchlist.missions.model",
    "NoteAdded": "punchlist.agent.events",
    "ApprovalOutcome": "punchlist.toolcalls.approvals",
    "ToolOutput": "punchlist.agent.events",
    "Plans": "punchlist.plan.service",
    "Policy": "punchlist.toolcalls.policy",
    "PunchlistError": "punchlist.errors",
    "Reason": "punchlist.agent.continuation",
    "BatchWriter": "punchlist.toolcalls.batch_writer",
    "ReplyReceived": "punchlist.agent.events",
    "Resources": "punchlist.toolcalls.tool",
    "RunResult": "punchlist.library",
    "Role": "punchlist.kernel.actors",
    "Rule": "punchlist.toolcalls.policy",
    "ToolContext": "punchlist.toolcalls.tool",
    "Runs": "punchlist.runs.service",
    "Scope": "punchlist.conversations.model",
    "CallStatus": "punchlist.toolcalls.lifecycle",
    "Store": "punchlist.storage.store",
    "TextDelta": "punchlist.agent.events",
    "TodoManager": "punchlist.checklist.manager",
    "ToolCallRequest": "punchlist.toolcalls.model",
    "ToolFailure": "punchlist.toolcalls.tool",
    "TransientFailure": "punchlist.toolcalls.tool",
    "TurnStarted": "punchlist.agent.events",
    "TurnEnded": "punchlist.agent.events",
    "TurnScope": "punchlist.conversations.model",
    "TurnTodoRepository": "punchlist.plan.repository",
    "Verdict": "punchlist.toolcalls.policy",
    "Workspace": "punchlist.tools.workspace",
    "native_tools": "punchlist.tools.tool_session",
    "open_store": "punchlist.storage.open",
    "parse_mission": "punchlist.missions.config.file",
    "tool": "punchlist.tools.function_tool",
}

__all__ = [
    "Actor",
    "Agent",
    "ApprovalAnswer",
    "ApprovalOutcome",
    "Approvals",
    "BatchWriter",
    "CallChanged",
    "CallStatus",
    "CancelSignal",
    "Checklists",
    "Continued",
    "Conversations",
    "CoreToolScheduler",
    "Effect",
    "Limits",
    "ListChanged",
    "Listeners",
    "MessageQueue",
    "Metrics",
    "MissionScope",
    "MissionTodos",
    "Missions",
    "Mode",
    "NewMissionTodo",
    "NoteAdded",
    "Plans",
    "Policy",
    "PunchlistError",
    "Reason",
    "ReplyReceived",
    "Resources",
    "Role",
    "Rule",
    "RunResult",
    "Runs",
    "Scope",
    "Store",
    "TextDelta",
    "TodoManager",
    "ToolCallRequest",
    "ToolCallService",
    "ToolContext",
    "ToolFailure",
    "ToolOutput",
    "TransientFailure",
    "TurnEnded",
    "TurnScope",
    "TurnStarted",
    "TurnTodoRepository",
    "Verdict",
    "Workspace",
    "__version__",
    "native_tools",
    "open_store",
    "parse_mission",
    "tool",
]


def __getattr__(name: str) -> Any:
    try:
        return getattr(import_module(_HOMES[name]), name)
    except KeyError:
        raise AttributeError(f"module 'punchlist' has no attribute {name!r}") from None
