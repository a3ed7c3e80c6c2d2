"""Does the work of one lease: drives the pipeline of a step-run, or of the items of a chunk, and reports what came of it.

Every time-out really ends the attempt: the tool is cancelled, and cancels its own work. What is decided is decided by
`engine.pipeline`; nothing here knows a rule. Tested in tests/unit/worker/test_run_step.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from noetl.dsl.playbook import Loop, Playbook, Step
from noetl.engine.actions import Finished, Next, RunTask, Suspend
from noetl.engine.extract import Wanted, for_item, for_task, server_reads, wanted
from noetl.engine.memory import stored_in
from noetl.engine.patches import patched_items
from noetl.engine.pipeline import Pipeline, restore, start
from noetl.engine.plan import plan
from noetl.engine.render import RenderError
from noetl.engine.run_info import Scopes, info_for
from noetl.engine.writes import ctx_keys, put
from noetl.model.errors import BadReference, CredentialUnavailable
from noetl.model.messages import Ending, ItemEnd, Record, Suspension
from noetl.model.outcome import Outcome, failed
from noetl.model.refs import holds_ref, is_manifest
from noetl.model.work import Chunk, Lease
from noetl.ports import Confirm
from noetl.worker.context import SMALL, Equipment, Log, Results, TaskContext
from noetl.worker.cursor import Claimed, Item, claim_task, patiently
from noetl.worker.last import last_of
from noetl.worker.reporter import Reporter

_NO_LIMIT: Final = nullcontext()
_BREATH_S: Final = 0.005  # tasks that never wait let others run after this long

_log = logging.getLogger(__name__)


class StepWork:
    """One lease and everything needed to do its work."""

    def __init__(
        self, shared: Equipment, playbook: Playbook, step: Step, reporter: Reporter, want: Callable[[], int]
    ) -> None:
        self._shared = shared
        self._playbook = playbook
        self._step = step
        self._reporter = reporter
        self._want = want
        self._work = reporter.lease.work
        self._info = info_for(playbook, step, self._work, shared.kinds, shared.defaults, shared.secrets.holds)
        self._scopes = Scopes.of(self._work.scopes)
        names = {"workload": self._scopes.workload, "execution_id": self._work.execution_id, "job": self._scopes.job}
        self._keys = shared.keys(playbook.keychain, names)
        self._time = asyncio.get_running_loop().time
        self._breath = self._time()
        self._total: int | None = None
        self._item_limit: Any = None

    async def run(self) -> list[Lease]:
        """Do the work and report it; gives the new work that came with the answer."""
        try:
            if self._playbook.keychain:
                await self._see_keychain()
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

    async def _see_keychain(self) -> None:
        """Resolve what this work's templates read of the keychain."""
        reads = plan(self._playbook, self._work.playbook).reads(self._step)
        found = await self._keys.read(reads)
        self._scopes = replace(self._scopes, keychain=found)

    async def _see_results(self) -> None:
        """Load what this work's templates read of stored results."""
        results, steps = self._shared.results, self._scopes.steps
        if results is None or not any(map(holds_ref, steps.values())):
            return
        made = plan(self._playbook, self._work.playbook)
        reads = made.reads(self._step)
        everything = made.reads_all(self._step)
        found = {
            name: await results.seen(value, everything or wanted(path[1:] for path in reads if path[0] == name))
            for name, value in steps.items()
        }
        self._scopes = replace(self._scopes, steps=found)

    # A step-run without a loop

    async def _run_whole(self) -> list[Lease]:
        if self._work.resume is None:
            pipeline = start(self._step.tasks, self._scopes, self._info)
        else:
            pipeline = await self._pipeline(self._scopes, None)
        self._reporter.snapshot = pipeline.snapshot
        ended = await self._drive(pipeline, None)
        if isinstance(ended, Suspend):
            return await self._reporter.suspend(_suspension(ended, pipeline), self._want())
        status = "error" if ended.status == "error" else "ok"
        ending = Ending(
            status, ended.result, ended.error, ended.scratch, last_of(pipeline, ended, self._shared.secrets)
        )
        return await self._reporter.end(ending, ended.writes, self._want())

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
        if chunk.source is None or self._shared.results is None:
            return chunk.items
        return await self._shared.results.items(chunk.source, chunk.start, chunk.count)

    async def _run_claim(self, loop: Loop) -> list[Lease]:
        """Claim rows; the claim takes effect only after they are recorded, and then they come as items."""
        claimed = Claimed(loop, self._reporter)
        outcome = await patiently(lambda: self._claim(loop, claimed), self._shared.clock, self._info.settings)
        if claimed.is_lost:
            return []  # the lease was: nothing took effect, and whoever has it now claims again
        error = await claimed.settle(outcome)
        return await self._reporter.end(Ending("error" if error else "ok", error=error), {}, self._want())

    async def _claim(self, loop: Loop, claimed: Claimed) -> Outcome:
        renderer = start(self._step.tasks, self._scopes, self._info).renderer(self._shared.clock.now())
        key = self._info.key(f"{self._step.name}_claim")
        task = claim_task(loop, renderer, self._shared.kinds, self._step.name, key)
        return task if isinstance(task, Outcome) else (await self._attempt(task, None, claimed.confirm))[0]

    async def _at_once(self, todo: Iterator[Item], width: int) -> bool:
        """Run several items at a time; one that ends the loop ends those that are under way (False)."""
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
        """Run items until none is left, or until the loop cannot go on (False)."""
        for index, item, key in todo:
            went_on = await self._item(index, item, key)
            if not went_on:  # an item that suspends keeps its place, so nothing else runs in it
                return went_on is None and self._is_parallel
        return True

    async def _item(self, index: int, item: Any, key: str | None) -> bool | None:
        """Run an item; tells whether another may follow, or None where this one suspends."""
        loop = self._step.loop
        assert loop is not None
        scopes = self._scopes.item(loop.iterator, item, index, self._total)
        pipeline = await self._pipeline(scopes, index, key)
        ended = await self._within_limit(pipeline, index)
        if isinstance(ended, Suspend):
            await self._reporter.suspend(_suspension(ended, pipeline, index))
            return None
        last = last_of(pipeline, ended, self._shared.secrets)
        self._reporter.add_item(ItemEnd(index, ended.status, ended.result, ended.error, ended.writes, key, last))
        if not self._is_parallel:
            self._see(ended.writes)
        return ended.status != "error" or self._is_best_effort

    async def _within_limit(self, pipeline: Pipeline, index: int) -> Finished | Suspend:
        """Run an item for as long as it may take; the time in which it is suspended counts."""
        given = self._item_limit
        memory, now = pipeline.memory, self._shared.clock.now()
        if given is not None and not memory.deadline:
            try:
                found = pipeline.renderer(now).value(given, "loop.item_timeout_ms")
                limit = None if found is None else float(found)
            except (RenderError, TypeError, ValueError) as error:
                return _failed(failed("template", f"`loop.item_timeout_ms` is no number of milliseconds: {error}"))
            if limit is not None:
                memory.limit_ms, memory.deadline = limit, now + round(limit)
        if not memory.deadline:
            return await self._drive(pipeline, index)
        left = 0 if self._is_cut_short(pipeline) else memory.deadline - now
        try:
            if left <= 0:
                raise TimeoutError
            async with asyncio.timeout(left / 1000):
                ended = await self._drive(pipeline, index)
        except TimeoutError:
            self._reporter.add(pipeline.records())
            message = f"item {index} took longer than its time-out of {memory.limit_ms / 1000:g} s and was ended"
            return _failed(failed("timeout", message, retryable=True))
        if isinstance(ended, Suspend) and (ended.until is None or ended.until > memory.deadline):
            return msgspec.structs.replace(ended, until=memory.deadline)
        return ended

    def _item_timeout(self) -> Any:
        given = self._step.loop.item_timeout_ms if self._step.loop is not None else None
        timeouts = self._info.settings.get("timeouts")
        usual = timeouts.get("loop_item_ms") if isinstance(timeouts, Mapping) else None
        return usual if given is None else given.data

    def _is_cut_short(self, pipeline: Pipeline) -> bool:
        """Tell whether a timer woke an item whose wait would not have ended by then."""
        woke = (self._work.resume or {}).get("wake") or {}
        return woke.get("by") == "timer" and (pipeline.due is None or pipeline.due > pipeline.memory.deadline)

    def _see(self, writes: Mapping[str, Any]) -> None:
        """Let the next item of a sequential loop see what this one wrote; what is reduced is seen when the loop ends."""
        reduce = self._info.settings.get("reduce")
        reduced = ctx_keys(reduce) if isinstance(reduce, Mapping) else {}
        seen = {key: value for key, value in ctx_keys(writes).items() if key not in reduced}
        if seen:
            ctx = dict(self._scopes.ctx)
            for key, value in seen.items():
                put(ctx, key, value)
            self._scopes = replace(self._scopes, ctx=ctx)

    @property
    def _is_parallel(self) -> bool:
        return self._step.loop is not None and bool(self._step.loop.mode == "parallel")

    @property
    def _is_best_effort(self) -> bool:
        found: Any = self._info.settings.get("policy")
        for key in ("failure", "mode"):
            found = found.get(key) if isinstance(found, Mapping) else None
        return bool(found == "best_effort")

    # One pipeline

    async def _pipeline(self, scopes: Scopes, index: int | None, key: str | None = None) -> Pipeline:
        info = self._info if index is None else replace(self._info, index=index, item_key=key)
        resume = self._work.resume
        snapshot = resume.get("pipeline") if resume else None
        if not snapshot:
            return start(self._step.tasks, scopes, info)
        values = [(stored, await self._load(stored)) for stored in stored_in(snapshot)]

        def load(stored: Mapping[str, Any]) -> Any:
            return next((value for known, value in values if known == stored), stored)

        return restore(self._step.tasks, snapshot, scopes, info, load)

    async def _load(self, stored: Mapping[str, Any]) -> Any:
        return await self._shared.results.load(stored) if self._shared.results is not None else stored

    async def _drive(self, pipeline: Pipeline, index: int | None) -> Finished | Suspend:
        now = self._shared.clock.now
        woke = self._work.resume.get("wake") if self._work.resume else None
        action: Next = await self._wake(pipeline, woke) if woke is not None else pipeline.advance(now())
        was_durable = False  # what the task before did is on disk before this one begins
        while True:
            self._reporter.add(pipeline.records())
            if isinstance(action, Finished):
                for held in pipeline.memory.results.values():
                    if held.pages is not None and is_manifest(held.kept) and self._shared.results is not None:
                        await self._shared.results.name(held.kept)
                return action
            if isinstance(action, Suspend):
                if not action.hold or action.until is None:
                    return action
                await self._shared.clock.sleep(max(0, action.until - now()) / 1000)
                action = pipeline.advance(now())
                continue
            durable = pipeline.plan.is_durable
            if durable or was_durable:
                await self._reporter.flush()
            was_durable = durable
            outcome, stored = await self._attempt(action, index)
            action = pipeline.resume(outcome, now(), stored)
            if self._time() - self._breath > _BREATH_S:
                await asyncio.sleep(0)
                self._breath = self._time()

    async def _wake(self, pipeline: Pipeline, woke: Mapping[str, Any]) -> Next:
        """Go on after a wait; a child's result that was stored stays so."""
        result, now = woke.get("result"), self._shared.clock.now()
        if not holds_ref(result) or self._shared.results is None:
            return pipeline.wake(woke, now)
        value, stored = await self._shared.results.adopt(result, self._server_reads(pipeline.task.label))
        return pipeline.wake({**woke, "result": value}, now, stored)

    async def _attempt(
        self, task: RunTask, index: int | None, confirm: Confirm | None = None
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        shared = self._shared
        runner = shared.tools.runner(task.kind)
        if runner is None:
            return failed("unknown", f"this worker does not run tasks of kind `{task.kind}`.", code="NO_TOOL"), None
        seconds, deadline = None, self._work.deadline
        if task.timeout_ms is not None:
            seconds = task.timeout_ms / 1000
            ends = shared.clock.now() + round(task.timeout_ms)
            deadline = ends if deadline is None else min(ends, deadline)
        log = Log(shared.clock, task, index, shared.secrets)
        self._reporter.sources[log] = log.records
        limit = asyncio.timeout(seconds) if seconds is not None else None
        try:
            if limit is None and task.auth is None:
                outcome = await runner(task.fields, self._context(task, log, deadline, confirm))
            else:
                async with limit or _NO_LIMIT:
                    if isinstance(task.auth, Mapping):
                        task = msgspec.structs.replace(task, auth=await self._keys.auth(task.auth))
                    outcome = await runner(task.fields, self._context(task, log, deadline, confirm))
        except CredentialUnavailable as error:
            outcome = failed("auth", str(error), code="CREDENTIAL", retryable=error.retryable)
        except TimeoutError as error:
            outcome = _timed_out(task, seconds) if limit is not None and limit.expired() else _bug(task, error)
        except Exception as error:  # noqa: BLE001 - a tool that raises must not end the worker
            outcome = _bug(task, error)
        finally:
            if log.is_written:
                self._reporter.add(log.records())
            del self._reporter.sources[log]
        outcome = shared.secrets.outcome(outcome)
        if confirm is not None or shared.results is None or isinstance(outcome.result, SMALL):
            return outcome, None
        return await self._kept(shared.results, task, outcome, index)

    def _context(self, task: RunTask, log: Log, deadline: int | None, confirm: Confirm | None) -> TaskContext:
        made = TaskContext(self._shared, task, log, self._work.execution_id, self._step.name, deadline, self._keys)
        made.confirm = confirm
        return made

    async def _kept(
        self, results: Results, task: RunTask, outcome: Outcome, index: int | None
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        """Put a large result away; gives the outcome, and the reference where there is one."""
        shared = self._shared
        where = {
            "execution_id": self._work.execution_id,
            "step": self._step.name,
            "number": self._work.number,
            "index": index,
            "delivery": self._reporter.lease.attempt,
            "wanted": partial(self._server_reads, task.label),
            "secrets": shared.secrets,
        }
        outcome, stored = await results.keep(task, outcome, where)
        if stored is not None:
            told = {name: stored[name] for name in ("ref", "store", "scope", "expires_at", "meta")}
            at, key = shared.clock.now(), task.idempotency_key
            self._reporter.add([Record("result.stored", at, task.label, key, index, task.attempt, payload=told)])
        return outcome, stored

    def _server_reads(self, label: str) -> Wanted:
        """Give what the server's templates read of a task's result."""
        read = server_reads(self._playbook, self._step.name)
        return for_task(read, label) if self._step.loop is None else for_item(read)


def _failed(outcome: Outcome) -> Finished:
    return Finished("error", error=msgspec.to_builtins(outcome.error))


def _timed_out(task: RunTask, seconds: float | None) -> Outcome:
    message = f"the task `{task.label}` took longer than its time-out of {seconds or 0:g} s and was ended"
    return failed("timeout", message, retryable=True)


def _bug(task: RunTask, error: Exception) -> Outcome:
    _log.exception("the kind %s raised instead of giving an outcome", task.kind, exc_info=error)
    message = f"the kind `{task.kind}` failed in an unforeseen way: {type(error).__name__}: {error}"
    return failed("unknown", message, code="TOOL_RAISED")


def _suspension(found: Suspend, pipeline: Pipeline, index: int | None = None) -> Suspension:
    return Suspension(found.cause, pipeline.snapshot(), found.until, found.signal, found.child, index)
