"""The judge of a third-party agent's goal (V3).

A judge takes longer than a hook may. The stop hook starts it in a process of its own (`punchlist goal judge`) and waits
a few seconds for the verdict. Meanwhile the agent confirms the criteria itself; its next stop finds the verdict. Start
and verdict are messages of the session. A verdict counts if the agent was not sent back to its work after it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from punchlist.agent.continuation import Continue, Stop
from punchlist.agent.goals import GoalVerdict, JudgeTask, VerdictKind, after_verdict, judge_agent, judge_request
from punchlist.agent.message_kinds import CONTINUATION
from punchlist.agent.turn_model import TurnRequest
from punchlist.conversations import repository as conversation_repository
from punchlist.conversations.model import Message, MessageRole, Scope
from punchlist.conversations.service import Conversations
from punchlist.errors import StoreDamaged
from punchlist.kernel import orphans
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.processes import is_running, process_identity
from punchlist.verification.goal import Goal

if TYPE_CHECKING:
    from punchlist.agent.definitions import AgentDefinition
    from punchlist.agent.runtime import AgentRuntime
    from punchlist.storage.store import Store

JUDGING: Final = "goal_judging"
"""The kind of the message that a judge has started; it contains the judge's process."""
VERDICT: Final = "goal_verdict"
SESSION_SUFFIX: Final = "-judge"
"""The judge has a conversation of its own, beside the session's."""
_POLL_SECONDS: Final = 0.1
_MAX_MESSAGES: Final = 200


@dataclass(frozen=True, slots=True)
class JudgeState:
    verdicts: tuple[GoalVerdict, ...] = ()
    """Since the user's last message, oldest first."""
    is_fresh: bool = False
    """The last verdict is about the work as it is now."""
    is_running: bool = False

    def decide(self) -> Continue | Stop | None:
        """What follows from the last verdict; None if there is none about the present work."""
        return after_verdict(self.verdicts[-1], self.verdicts[:-1]) if self.is_fresh else None


def read_state(messages: Sequence[Message], after: int) -> JudgeState:
    """The judge's part in the messages of a session after a position."""
    verdicts: list[GoalVerdict] = []
    is_fresh, judge = False, ""
    for message in messages:
        if message.position <= after:
            continue
        if message.kind == VERDICT:
            verdicts.append(_decode(message.content))
            is_fresh, judge = True, ""
        elif message.kind == JUDGING:
            judge = message.content
        elif message.kind == CONTINUATION and is_fresh:
            # The agent was sent back for this verdict; its work is judged again.
            is_fresh = False
    return JudgeState(tuple(verdicts), is_fresh, bool(judge) and is_running(judge) is not False)


class GoalVerdicts:
    """Starts and verdicts of judges, in a session."""

    def __init__(self, store: Store, conversations: Conversations) -> None:
        self._store = store
        self._conversations = conversations

    def state(self, session: str, after: int) -> JudgeState:
        with self._store.read() as tx:
            newest = conversation_repository.newest_messages(tx, session, _MAX_MESSAGES)
        return read_state(newest[::-1], after)

    def wait(self, session: str, after: int, deadline: float) -> JudgeState:
        """The state when a verdict has arrived, when the judge has ended, or at `deadline` of the monotonic clock."""
        while True:
            state = self.state(session, after)
            if state.is_fresh or not state.is_running or time.monotonic() >= deadline:
                return state
            time.sleep(_POLL_SECONDS)

    def add_start(self, scope: Scope, process: str) -> None:
        self._conversations.add_message(scope, MessageRole.SYSTEM, process, kind=JUDGING)

    def add_verdict(self, scope: Scope, verdict: GoalVerdict) -> None:
        content = json.dumps({"verdict": verdict.kind.value, "text": verdict.text}, ensure_ascii=False)
        self._conversations.add_message(scope, MessageRole.SYSTEM, content, kind=VERDICT)


async def judge_goal(
    runtime: AgentRuntime, supervisor: AgentDefinition, goal: Goal, request: str, items: str
) -> GoalVerdict:
    """Ask a judge. The runtime's session is the judge's own."""
    task = JudgeTask()
    agent = replace(judge_agent(supervisor), model=goal.judge_model)
    turn = TurnRequest(agent, CancelSignal(), judge_request(goal, request, items, ""), item=task)
    result = await runtime.run_turn(turn)
    return task.verdict or GoalVerdict(VerdictKind.NONE, f"{result.reason}: {result.why}")


def start_judge(session: str, folder: Path) -> str:
    """Start `punchlist goal judge` in a process that outlives this one; returns its identity."""
    # Without -P, a folder `punchlist` of the project would be imported.
    command = [sys.executable, "-P", "-m", "punchlist", "goal", "judge", "--session", session]
    nothing = subprocess.DEVNULL
    with orphans.starting() as add:
        process = subprocess.Popen(
            command, cwd=folder, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
        add(process.pid)
    return process_identity(process.pid)


def _decode(content: str) -> GoalVerdict:
    try:
        data = json.loads(content)
        return GoalVerdict(VerdictKind(data["verdict"]), data["text"])
    except (ValueError, KeyError, TypeError):
        raise StoreDamaged.not_as_written("A verdict on a goal") from None
