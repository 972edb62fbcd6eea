"""Claims of completion: an item is completed only with work behind it, and only if its check passes (V1, V2).

A call that completes items is a claim. Before it runs, the calls before it in the reply have ended. A claim without
a successful call of its own is questioned once. The item's check runs as a call of its own through scheduler and
policy; if it fails, the claim is refused with the output, and the item stays open.

A check holds after the last change: it is run again after later work in the reply, and before the turn ends as
completed (`PassedChecks` counts the changes).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from punchlist.agent.checks import CheckRunner, PassedChecks
from punchlist.agent.definitions import DELEGATE
from punchlist.agent.tool_execution import CHECK_SUFFIX, CallResults, ToolExecution
from punchlist.agent.work_log import LIST_TOOLS, WorkLog, result_fields
from punchlist.kernel.cancellation import CancelSignal
from punchlist.kernel.ids import new_id
from punchlist.kernel.text import one_line, quoted, visible_block, without_tags
from punchlist.models.model import CallReturn, Message, Reply, RequestedCall
from punchlist.verification.model import NO_VERIFICATION, Check, CheckOutcome, CheckResult, EvidenceCall, Verification

QUESTION: Final = (
    "Not completed yet: no tool call has succeeded for {titles} since it was begun{surplus}. Do the work first. If it "
    "really needs none, or is done already, make the same call again."
)
SURPLUS: Final = " (one call counts for one item)"
FAILED_BEFORE: Final = (
    "Not completed: {tool} failed in the same reply. Look at its result first, then make this call again."
)
CLAIMED: Final = "Not completed: {title} stays open."
LATER: Final = "{title} is open again: a later call has changed something."
UNCHECKED: Final = "{title} is open again."
COMES_AFTER: Final = "{tool}: comes after a call that waits"


@dataclass(frozen=True, slots=True)
class CompletionClaim:
    """One item that a call completes."""

    id: str
    key: str
    """The item's name in the work log."""
    title: str
    verification: Verification = NO_VERIFICATION
    reference: str = ""
    """How the call names it."""
    was_open: bool = True
    """False if the call adds it as completed, or if it was cancelled before."""
    is_new: bool = False
    """The call adds it: no work can have been done for it."""

    @property
    def check(self) -> Check | None:
        return self.verification.check


class ClaimSource:
    """Finds what a call completes, and receives the verification of what is completed."""

    def is_claim(self, call: RequestedCall) -> bool:
        raise NotImplementedError

    async def claims(self, call: RequestedCall) -> Sequence[CompletionClaim]:
        """Empty if the call completes nothing, or is refused by its tool anyway."""
        raise NotImplementedError

    def left_open(self, call: RequestedCall, claims: Sequence[CompletionClaim]) -> RequestedCall:
        """The same call, without completing what is claimed. Only for calls that add items."""
        raise NotImplementedError

    def implied(self) -> CompletionClaim | None:
        """The item that a reply without calls may have finished."""
        return None

    async def check_failed(self, claim: CompletionClaim, result: CheckResult) -> None:
        """Keep the result with the item, which stays open."""

    def verified(self, claim: CompletionClaim, verification: Verification) -> None:
        """The call that completes the item runs next."""

    def finished(self, text: str) -> None:
        """The check of the implied claim has passed."""

    async def with_checks(self) -> Sequence[CompletionClaim]:
        """The completed items of the turn whose checks have passed in it, or are still to be run."""
        return ()

    async def rechecked(self, claim: CompletionClaim, result: CheckResult) -> None:
        """The check of a completed item was run again: if it failed, the item is open again."""


class _Verdict(NamedTuple):
    refusal: str = ""
    waiting: tuple[str, ...] = ()
    note: str = ""


Execute = Callable[[Sequence[RequestedCall]], Awaitable[CallResults]]


class CompletionGate:
    """Runs the calls of a reply; claims of completion are verified first."""

    def __init__(
        self,
        execution: ToolExecution,
        work: WorkLog,
        source: ClaimSource | None,
        checks: CheckRunner,
        passed: PassedChecks | None = None,
    ) -> None:
        self._execution = execution
        self._work = work
        self._source = source
        self._checks = checks
        self._passed = passed if passed is not None else PassedChecks()
        self._verified: list[tuple[str, CompletionClaim]] = []
        """The claims of the reply whose checks have passed, with the id of their call."""
        self._questioned: set[str] = set()
        self._refused: list[str] = []

    async def run(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        return await self._run(calls, signal, lambda some: self._execution.run(some, signal))

    async def resume(self, calls: Sequence[RequestedCall], signal: CancelSignal) -> CallResults:
        """Like `run`, for calls that may have run before the program ended."""
        return await self._run(calls, signal, lambda some: self._execution.resume(some, signal))

    async def read_files(self, paths: Sequence[str], signal: CancelSignal) -> list[tuple[str, str]]:
        """Read files for the agent. These calls are no work on an item."""
        calls = [RequestedCall(new_id(), "read_file", {"path": path}) for path in paths]
        done = await self._execution.run(calls, signal)
        texts = {result.call_id: result.text for result in done.results if not result.failed}
        return [(path, texts[call.id]) for path, call in zip(paths, calls, strict=True) if call.id in texts]

    async def finish_without_call(self, text: str, signal: CancelSignal) -> None:
        """After a reply without calls: if the check of the only item passes, the item is finished."""
        claim = self._source.implied() if self._source is not None else None
        if self._source is None or claim is None or claim.check is None:
            return
        (evidence,) = self._work.evidence([claim.key])
        if not evidence:
            return
        verdict = await self._verify(claim, evidence, f"{new_id()}{CHECK_SUFFIX}", self._source, signal)
        if not verdict.refusal and not verdict.waiting and not verdict.note:
            self._source.finished(text)

    async def _run(self, calls: Sequence[RequestedCall], signal: CancelSignal, execute: Execute) -> CallResults:
        source = self._source
        self._refused, self._verified = [], []
        if source is None or not any(source.is_claim(call) for call in calls):
            done = await execute(calls)
            self._record(calls, done.results)
            return done
        results: list[CallReturn] = []
        before: list[RequestedCall] = []
        for number, call in enumerate(calls):
            before.append(call)
            if number + 1 < len(calls) and not source.is_claim(calls[number + 1]) and not source.is_claim(call):
                continue
            if source.is_claim(call):
                waiting = await self._claim(call, source, signal, execute, results)
            else:
                waiting = await self._execute(before, execute, results)
            before = []
            if waiting:
                after = [COMES_AFTER.format(tool=later.tool) for later in calls[number + 1 :]]
                return CallResults(results, [*waiting, *after], refused=self._refused)
        await self._recheck_reply(source, results, signal)
        return CallResults(results, (), refused=self._refused)

    def _record(self, calls: Sequence[RequestedCall], results: Sequence[CallReturn]) -> None:
        self._work.record(calls, results)
        answered = {result.call_id for result in results}
        # A call that failed may have changed something, too.
        if any(call.id in answered and self._execution.may_change_files(call) for call in calls):
            self._passed.changed()

    def restore(self, messages: Sequence[Message]) -> None:
        """Count the changes of a turn that is resumed, and which items were completed after which of them."""
        calls = {call.id: call for message in messages if isinstance(message, Reply) for call in message.calls}
        for message in messages:
            if not isinstance(message, CallReturn) or (call := calls.get(message.call_id)) is None:
                continue
            if call.tool == DELEGATE or self._execution.may_change_files(call):
                self._passed.changed()
            elif call.tool == "complete_todo" and isinstance(id := result_fields(message.text).get("id"), str):
                self._passed.add(id)

    async def recheck(self, signal: CancelSignal) -> list[str]:
        """Before the turn ends as completed: run the checks that have passed before the last change, and those of items
        that were completed without a claim, such as by `punchlist todos done` in a command.

        Returns the texts for the model about the items that are open again.
        """
        source = self._source
        if source is None or not self._passed.any_change or signal.is_set:
            return []
        completed = await source.with_checks()
        unchecked = {claim.id for claim in completed if claim.verification.needs_check}
        stale = [claim for claim in completed if claim.id in unchecked or self._passed.is_stale(claim.id)]
        return [text for _, text in await self._run_again(stale, source, signal, unchecked)]

    async def _recheck_reply(self, source: ClaimSource, results: list[CallReturn], signal: CancelSignal) -> None:
        """After a reply that has worked on after its claims."""
        calls = {claim.id: call for call, claim in self._verified if self._passed.is_stale(claim.id)}
        stale = [claim for _, claim in self._verified if claim.id in calls]
        for claim, text in await self._run_again(stale, source, signal):
            self._refused.append(text.partition("\n")[0])
            number = next(number for number, each in enumerate(results) if each.call_id == calls[claim.id])
            results[number] = replace(results[number], text=text, failed=True)

    async def _run_again(
        self,
        claims: Sequence[CompletionClaim],
        source: ClaimSource,
        signal: CancelSignal,
        unchecked: Collection[str] = (),
    ) -> list[tuple[CompletionClaim, str]]:
        """The claims whose checks fail now, with the text for the model. Each check is run once.

        `unchecked` are the ids of items whose checks have no result yet.
        """
        results: dict[Check, CheckResult] = {}
        failed: list[tuple[CompletionClaim, str]] = []
        for claim in claims:
            check = claim.check
            if check is None:
                continue
            if check not in results:
                results[check] = await self._checks.run_again(check, f"{new_id()}{CHECK_SUFFIX}", signal)
            result = results[check]
            if signal.is_set and result.outcome is CheckOutcome.NOT_RUN:
                continue
            self._passed.add(claim.id)
            if result.outcome is not CheckOutcome.PASSED or claim.id in unchecked:
                await source.rechecked(claim, result)
            if result.outcome is CheckOutcome.FAILED:
                failed.append((claim, failed_check(claim, result, UNCHECKED if claim.id in unchecked else LATER)))
        return failed

    async def _execute(
        self, calls: Sequence[RequestedCall], execute: Execute, results: list[CallReturn]
    ) -> Sequence[str]:
        done = await execute(calls)
        self._record(calls, done.results)
        results += done.results
        return done.waiting

    async def _claim(
        self,
        call: RequestedCall,
        source: ClaimSource,
        signal: CancelSignal,
        execute: Execute,
        results: list[CallReturn],
    ) -> Sequence[str]:
        notes: list[str] = []
        claims = await source.claims(call)
        failed = next((each for each in results if each.failed and each.tool not in LIST_TOOLS), None)
        evidence = self._work.evidence([None if claim.is_new else claim.key for claim in claims])
        if claims and failed is not None:
            refusal = FAILED_BEFORE.format(tool=failed.tool)
        else:
            refusal = self._question([claim for claim, found in zip(claims, evidence, strict=True) if not found])
        for number, claim in enumerate(claims if not refusal else ()):
            check_id = f"{call.id}{CHECK_SUFFIX}{number or ''}"
            verdict = await self._verify(claim, evidence[number], check_id, source, signal)
            if verdict.waiting:
                return verdict.waiting
            if verdict.refusal:
                refusal = verdict.refusal
                break
            notes += [verdict.note] if verdict.note else []
        if refusal:
            self._refused.append(refusal.partition("\n")[0])
            if all(claim.was_open for claim in claims):
                results.append(CallReturn(call.id, call.tool, refusal, failed=True))
                return ()
            # Items that are not written would not be open.
            call, notes = source.left_open(call, claims), [refusal]
        waiting = await self._execute([call], execute, results)
        if notes and results and results[-1].call_id == call.id:
            results[-1] = replace(results[-1], text="\n\n".join([results[-1].text, *notes]))
        return waiting

    def _question(self, unproven: Sequence[CompletionClaim]) -> str:
        """The question about items without work of their own behind them, which is asked once for each (V1).

        It is asked of items with a check, too: a check that passes without work may prove nothing.
        """
        asked = [claim for claim in unproven if self._questioned.isdisjoint((claim.id, claim.key))]
        if not asked:
            return ""
        self._questioned.update(name for claim in asked for name in (claim.id, claim.key))
        surplus = SURPLUS if any(self._work.is_shared(claim.key) for claim in asked if not claim.is_new) else ""
        return QUESTION.format(titles=", ".join(map(_named, asked)), surplus=surplus)

    async def _verify(
        self,
        claim: CompletionClaim,
        evidence: Sequence[EvidenceCall],
        check_id: str,
        source: ClaimSource,
        signal: CancelSignal,
    ) -> _Verdict:
        verification = claim.verification.with_evidence(evidence)
        note = ""
        if claim.check is not None:
            ran = await self._checks.run(claim.check, check_id, signal)
            if ran.waiting:
                return _Verdict(waiting=tuple(ran.waiting))
            assert ran.result is not None
            if ran.result.outcome is CheckOutcome.FAILED:
                await source.check_failed(claim, ran.result)
                return _Verdict(failed_check(claim, ran.result))
            if ran.result.outcome is CheckOutcome.NOT_RUN:
                note = f"The check of {_named(claim)} was not run: {without_tags(ran.result.output)}"
            else:
                self._passed.add(claim.id)
                self._verified.append((check_id.partition(CHECK_SUFFIX)[0], claim))
            verification = replace(verification, result=ran.result)
        source.verified(claim, verification)
        return _Verdict(note=note)


def _named(claim: CompletionClaim) -> str:
    return quoted(without_tags(claim.title))


def failed_check(claim: CompletionClaim, result: CheckResult, what: str = CLAIMED) -> str:
    assert claim.check is not None
    wrong = "" if claim.check.by_person else " If the check itself is wrong, give the item up and say so."
    check = quoted(without_tags(one_line(claim.check.description)))
    return (
        f"{what.format(title=_named(claim))} Its check failed: {check}\n\n"
        f"{without_tags(visible_block(result.output))}\n\nFix what is wrong, then complete it again.{wrong}"
    )
