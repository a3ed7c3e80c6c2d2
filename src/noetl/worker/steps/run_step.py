"""Do the work of one lease: drive the pipelines of a step-run or loop items.

Outcomes are reported. All decisions are made by `engine.pipeline`; no rule is here. Tested in
tests/unit/worker/steps/test_run_step.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from noetl.dsl.tree.playbook import Loop
from noetl.engine.pipeline.pipeline import Pipeline, restore, start
from noetl.engine.plan.extract import Wanted, for_item, for_task, server_reads, wanted
from noetl.engine.plan.patches import patched_items
from noetl.engine.state.writes import ctx_keys, put
from noetl.engine.tasks.actions import Finished, Next, RunTask, Suspend
from noetl.engine.tasks.memory import stored_in
from noetl.engine.tasks.render import RenderError
from noetl.engine.tasks.run_info import Scopes, for_work
from noetl.model.errors import BadReference, CredentialUnavailable
from noetl.model.messages import Ending, ItemEnd, Record, Suspension
from noetl.model.outcome import Outcome, failed
from noetl.model.refs import expanded, holds_ref, is_manifest
from noetl.model.work import Chunk, Lease
from noetl.ports import Confirm
from noetl.trace_context import attempt_span, parse_traceparent, trace_headers
from noetl.worker.cooperative import directly
from noetl.worker.secrets.keychain import KeyRing, Users
from noetl.worker.steps.attempts import run_attempt
from noetl.worker.steps.cursor import Claimed, Item, claim_task, is_full, patiently
from noetl.worker.steps.failure_context import failure_context
from noetl.worker.steps.playbook_cache import PlannedStep
from noetl.worker.steps.reporter import Reporter
from noetl.worker.steps.results import room_in
from noetl.worker.tool_context import SMALL, Results, TaskContext, WorkerResources

BREATH_MS: Final = 5  # tasks that never wait yield to others after this long


class StepWork:
    """One lease and everything needed to do its work."""

    _keys: KeyRing | None = None
    _breath = 0  # when others could last run
    _total: int | None = None
    _item_limit: Any = None

    def __init__(self, shared: WorkerResources, plan: PlannedStep, reporter: Reporter, want: Callable[[], int]) -> None:
        self.shared = shared
        self._plan = plan
        self._step = plan.step
        self._reporter = reporter
        self._want = want
        self._work = work = reporter.lease.work
        self.info = for_work(plan.info, work)
        self._scopes = Scopes.of(work.scopes)

    @property
    def keys(self) -> KeyRing:
        """The credentials that this work may use."""
        if self._keys is None:
            scopes, execution_id = self._scopes, self._work.execution_id
            names = {"workload": scopes.workload, "execution_id": execution_id, "job": scopes.job}
            users = Users(execution_id, self._plan.playbook.path)
            self._keys = self.shared.keys(self._plan.playbook.keychain, names, users)
        return self._keys

    @property
    def sources(self) -> dict[object, Callable[[], Iterable[Record]]]:
        """The logs of running attempts."""
        return self._reporter.sources

    def trace_headers(self, task: RunTask) -> Mapping[str, str]:
        """Return the headers with which a request continues the trace of an attempt."""
        work = self._work
        if not work.trace_context:
            return {}
        span = attempt_span(work.run_id, task.idempotency_key, task.attempt)
        return trace_headers(work.trace_context, span, work.execution_id, work.step, work.work_id)

    async def run(self) -> list[Lease]:
        """Do the work and report it; return the new work of the answer."""
        try:
            if self._plan.playbook.keychain:
                self._scopes = replace(self._scopes, keychain=await self.keys.read(self._plan.reads))
            if self._scopes.steps:
                await self._see_results()
            if self._work.chunk is None:
                return await self._run_whole()
            if self._work.chunk.claim and self._step.loop is not None:
                return await self._run_claim(self._step.loop)
            return await self._run_items(self._work.chunk)
        except (BadReference, CredentialUnavailable) as error:
            told = failed("reference" if isinstance(error, BadReference) else "auth", str(error)).error
            return await self._reporter.end(Ending("error", error=msgspec.to_builtins(told)), {}, self._want())

    @property
    def _reads_stored(self) -> bool:
        steps = self._scopes.steps
        return bool(steps) and self.shared.results is not None and any(map(holds_ref, steps.values()))

    async def _see_results(self) -> None:
        """Load the parts of stored results that this work's templates read."""
        results, steps = self.shared.results, self._scopes.steps
        if results is None or not self._reads_stored:
            return
        reads, everything = self._plan.reads, self._plan.reads_all
        found = {
            name: await results.seen(name, value, everything or wanted(path[1:] for path in reads if path[0] == name))
            for name, value in steps.items()
        }
        self._scopes = replace(self._scopes, steps=found)

    # A step-run without a loop

    async def _run_whole(self) -> list[Lease]:
        reporter = self._reporter
        pipeline = await self._pipeline(self._scopes, None)
        reporter.snapshot = lambda: None if pipeline.ending is not None else pipeline.snapshot()
        ended = await self._drive(pipeline, None)
        if isinstance(ended, Suspend):
            return await reporter.suspend(_suspension(ended, pipeline), self._want())
        last = await self._failure_context(pipeline, ended)
        status = "error" if ended.status == "error" else "ok"
        ending = Ending(status, ended.result, ended.error, ended.scratch, last)
        return await reporter.end(ending, ended.writes, self._want())

    async def _failure_context(self, pipeline: Pipeline, ended: Finished) -> dict[str, Any] | None:
        if ended.error is None:
            return None
        return await self.shared.cooperation.run(failure_context, pipeline, ended, self.shared.secrets)

    # Items of a loop

    async def _run_items(self, chunk: Chunk) -> list[Lease]:
        self._total, self._item_limit = chunk.total, self._item_timeout()
        items = patched_items(await self._items(chunk), self._work.patch)
        keys = chunk.keys or (None,) * len(items)
        numbered = zip(range(chunk.start, chunk.start + len(keys)), items, keys, strict=True)
        if self._item_limit is not None:
            self._reporter.begin()
        await self._at_once((one for one in numbered if one[0] not in chunk.ended), chunk.width)
        self._reporter.finishing = True
        return await self._reporter.flush(self._want())

    async def _items(self, chunk: Chunk) -> Sequence[Any]:
        if chunk.source is None or self.shared.results is None:
            return chunk.items
        return await self.shared.results.items(chunk.source, chunk.start, chunk.count)

    async def _run_claim(self, loop: Loop) -> list[Lease]:
        """Claim rows, and commit once they are recorded; then they come as items."""
        claimed, now, rows = Claimed(loop, self._reporter), self.shared.clock.now, 0
        began, frame = now(), self._work.chunk.frame if self._work.chunk is not None else {}
        while True:
            outcome = await patiently(lambda: self._claim(loop, claimed, frame), self.shared.clock, self.info.settings)
            if claimed.is_lost:
                return []  # the lease was lost: nothing was committed, and its new holder claims again
            error = await claimed.settle(outcome)
            rows += claimed.count
            if error is not None or is_full(frame, rows, claimed, began, now()):
                break
        return await self._reporter.end(Ending("error" if error else "ok", error=error), {}, self._want())

    async def _claim(self, loop: Loop, claimed: Claimed, frame: Mapping[str, Any]) -> Outcome:
        renderer = start(self._step.tasks, self._scopes, self.info).renderer(self.shared.clock.now())
        if frame:
            renderer = renderer.over(frame={"max_rows": frame["rows"]})
        key = self.info.key(f"{self._step.name}_claim")
        place = (self.shared.kinds, self._step.name, key)
        task = await self.shared.cooperation.run(claim_task, loop, renderer, *place)
        return task if isinstance(task, Outcome) else await self._attempt(task, None, claimed.confirm)

    async def _at_once(self, todo: Iterator[Item], width: int) -> bool:
        """Run items at once; if one ends the loop, cancel the others and return False."""
        if width <= 1:
            return await self._some(todo)
        running = {asyncio.ensure_future(self._some(todo)) for _ in range(width)}
        try:
            while running:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                if not all(task.result() for task in done):
                    return False
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
        return True

    async def _some(self, todo: Iterator[Item]) -> bool:
        """Run items until none is left, or until the loop must end (False)."""
        for index, item, key in todo:
            went_on = await self._item(index, item, key)
            if not went_on:  # an item that suspends keeps its place, so nothing else runs in it
                return went_on is None and self._plan.is_parallel
        return True

    async def _item(self, index: int, item: Any, key: str | None) -> bool | None:
        """Run an item; return whether another may follow, or None if it suspends."""
        loop = self._step.loop
        assert loop is not None
        scopes = self._scopes.item(loop.iterator, item, index, self._total)
        pipeline = await self._pipeline(scopes, index, key)
        ended = await self._within_limit(pipeline, index)
        if isinstance(ended, Suspend):
            await self._reporter.suspend(_suspension(ended, pipeline, index))
            return None
        last = await self._failure_context(pipeline, ended)
        self._reporter.add_item(ItemEnd(index, ended.status, ended.result, ended.error, ended.writes, key, last))
        if not self._plan.is_parallel:
            self._see(ended.writes)
        return ended.status != "error" or self._plan.is_best_effort

    async def _within_limit(self, pipeline: Pipeline, index: int) -> Finished | Suspend:
        """Run an item within its time limit; the time in suspension counts."""
        given, memory = self._item_limit, pipeline.memory
        if given is None and not memory.deadline:
            return await self._drive(pipeline, index)
        now = self.shared.clock.now()
        if given is not None and not memory.deadline:
            try:
                render = pipeline.renderer(now).value
                found = await self.shared.cooperation.run(render, given, "loop.item_timeout_ms")
                limit = None if found is None else float(found)
                ends = 0 if limit is None else now + round(limit)
            except (RenderError, TypeError, ValueError, OverflowError) as error:
                return _failed(failed("template", f"`loop.item_timeout_ms` is no number of milliseconds: {error}"))
            if limit is not None:
                memory.limit_ms, memory.deadline = limit, ends
        if not memory.deadline:
            return await self._drive(pipeline, index)
        left = 0 if self._is_cut_short(pipeline) else memory.deadline - now
        try:
            if left <= 0:
                raise TimeoutError
            async with asyncio.timeout(left / 1000):
                ended = await self._drive(pipeline, index)
        except TimeoutError:
            message = f"item {index} took longer than its time-out of {memory.limit_ms / 1000:g} s and was ended"
            return _failed(failed("timeout", message, retryable=True))
        if isinstance(ended, Suspend) and (ended.until is None or ended.until > memory.deadline):
            return msgspec.structs.replace(ended, until=memory.deadline)
        return ended

    def _item_timeout(self) -> Any:
        given = self._step.loop.item_timeout_ms if self._step.loop is not None else None
        timeouts = self.info.settings.get("timeouts")
        usual = timeouts.get("loop_item_ms") if isinstance(timeouts, Mapping) else None
        return usual if given is None else given.data

    def _is_cut_short(self, pipeline: Pipeline) -> bool:
        """Return whether a timer woke an item before its wait was over."""
        woke = (self._work.resume or {}).get("wake") or {}
        return woke.get("by") == "timer" and (pipeline.due is None or pipeline.due > pipeline.memory.deadline)

    def _see(self, writes: Mapping[str, Any]) -> None:
        """Show the next sequential item what this one wrote; reduced values come last."""
        reduce = self.info.settings.get("reduce")
        reduced = ctx_keys(reduce) if isinstance(reduce, Mapping) else {}
        seen = {key: value for key, value in ctx_keys(writes).items() if key not in reduced}
        if seen:
            ctx = dict(self._scopes.ctx)
            for key, value in seen.items():
                put(ctx, key, value)
            self._scopes = replace(self._scopes, ctx=ctx)

    # One pipeline

    async def _pipeline(self, scopes: Scopes, index: int | None, key: str | None = None) -> Pipeline:
        info = self.info if index is None else replace(self.info, index=index, item_key=key)
        resume = self._work.resume
        snapshot = resume.get("pipeline") if resume else None
        if not snapshot:
            return start(self._step.tasks, scopes, info, self._reporter.records)
        results = self.shared.results
        values = [(one, expanded(one) if results is None else await results.load(one)) for one in stored_in(snapshot)]

        def load(stored: Mapping[str, Any]) -> Any:
            return next((value for known, value in values if known == stored), stored)

        return restore(self._step.tasks, snapshot, scopes, info, load, self._reporter.records)

    async def _drive(self, pipeline: Pipeline, index: int | None) -> Finished | Suspend:
        now, results = self.shared.clock.now, self.shared.results
        run = self.shared.cooperation.run if self._plan.evaluates else directly
        at = now()
        self._breath = self._breath or at
        woke = self._work.resume.get("wake") if self._work.resume else None
        action = await self._wake(pipeline, woke) if woke is not None else await run(pipeline.advance, at)
        was_durable = False  # what the task before did is on disk before this one begins
        while not isinstance(action, Finished):
            if isinstance(action, Suspend):
                if not action.hold or action.until is None:
                    return action
                await self.shared.clock.sleep(max(0, action.until - now()) / 1000)
                action = await run(pipeline.advance, now())
                continue
            if was_durable or pipeline.plan.layered.is_durable:
                await self._reporter.flush()
                was_durable = pipeline.plan.layered.is_durable
            outcome = await self._attempt(action, index)
            stored = None
            if results is not None and not isinstance(outcome.result, SMALL):
                outcome, stored = await self._kept(results, pipeline, action, outcome)
            at = now()
            action = await run(pipeline.resume, outcome, at, stored)
            if at - self._breath > BREATH_MS:
                await asyncio.sleep(0)
                self._breath = now()
        for held in pipeline.memory.results.values():
            if held.pages is not None and is_manifest(held.kept) and results is not None:
                await results.name(held.kept)
        return action

    async def _wake(self, pipeline: Pipeline, woke: Mapping[str, Any]) -> Next:
        """Continue after a wait; a child's stored result stays stored."""
        result, now, run = woke.get("result"), self.shared.clock.now(), self.shared.cooperation.run
        value, stored = expanded(result), None
        if value is result and not holds_ref(result):
            return await run(pipeline.wake, woke, now)
        if self.shared.results is not None:
            value, stored = await self.shared.results.adopt(result, self._server_reads(pipeline.task.label))
        return await run(pipeline.wake, {**woke, "result": value}, now, stored)

    async def _attempt(self, task: RunTask, index: int | None, confirm: Confirm | None = None) -> Outcome:
        runner = self.shared.tools.runner(task.kind)
        if runner is None:
            return failed("unknown", f"this worker does not run tasks of kind `{task.kind}`.", code="NO_TOOL")
        context = TaskContext(self, task, index, self._work.deadline, confirm)
        counts, pool, time, ok = self.shared.counts, self._work.pool, asyncio.get_running_loop().time, False
        log, outcome = self._reporter.log, None
        counts.begin(task.kind, pool)
        if log is not None:
            log.attempt_started(task, index)
        began = time()
        try:
            outcome = await run_attempt(runner, task, context)
            ok = outcome.error is None
        finally:
            took = time() - began
            counts.end(task.kind, pool, took, ok=ok, sink=self._plan.sink(task.label))
            if log is not None and outcome is None:
                log.attempt_ended(task, index, None, took)
            if context.lines is not None:
                self._reporter.take_lines(context, context.lines)
        if self._work.trace_context:
            outcome = _traced(outcome, self._work.trace_context)
        if "http" in outcome.helpers:
            self.shared.secrets.learn_response(outcome.helpers["http"])
        outcome = outcome if outcome.error is None else self.shared.secrets.outcome(outcome)
        if log is not None:
            log.attempt_ended(task, index, outcome, took)
        return outcome

    async def _kept(
        self, results: Results, pipeline: Pipeline, task: RunTask, outcome: Outcome
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        shared, index = self.shared, pipeline.info.index
        where = {
            "execution_id": self._work.execution_id,
            "step": self._step.name,
            "number": self._work.number,
            "index": index,
            "delivery": self._reporter.lease.attempt,
            "wanted": partial(self._server_reads, task.label),
            "room": partial(room_in, pipeline),
            "secrets": shared.secrets,
        }
        outcome, stored = await results.keep(task, outcome, where)
        if stored is not None:
            told = {name: stored[name] for name in ("ref", "store", "scope", "expires_at", "meta")}
            place = (task.label, task.idempotency_key, index, task.attempt)
            self._reporter.records.append(Record("result.stored", shared.clock.now(), *place, payload=told))
        return outcome, stored

    def _server_reads(self, label: str) -> Wanted:
        read = server_reads(self._plan.playbook, self._step.name)
        return for_task(read, label) if self._step.loop is None else for_item(read)


def _traced(outcome: Outcome, context: str) -> Outcome:
    """Return an outcome with its trace, and the span that the other side names."""
    told = {"trace_id": context[3:35]}
    if "http" in outcome.helpers:
        answer = str(outcome.helpers["http"].get("headers", {}).get("traceresponse", ""))
        told |= {"remote": answer} if parse_traceparent(answer) is not None else {}
    return replace(outcome, meta={**outcome.meta, **told})


def _failed(outcome: Outcome) -> Finished:
    return Finished("error", error=msgspec.to_builtins(outcome.error))


def _suspension(found: Suspend, pipeline: Pipeline, index: int | None = None) -> Suspension:
    return Suspension(found.cause, pipeline.snapshot(), found.until, found.signal, found.child, index, found.civil)
