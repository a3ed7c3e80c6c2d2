"""Claim the rows of a cursor loop; they are recorded before the claim commits.

Rows come from the claim's own statement, through the same tool kind that a task would use. The claim's transaction
stays open until the control plane has recorded its rows, so no row is ever marked as claimed and then lost. A row that
comes again after a crash is recognized by its key. Tested in tests/unit/worker/steps/test_cursor.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from noetl.dsl.tree.playbook import Loop, Value
from noetl.engine.state.frames import row_key
from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.render import Renderer, RenderError
from noetl.engine.tasks.retry import delay_ms, runtime_schedule
from noetl.model.messages import Row
from noetl.model.outcome import Outcome, failed
from noetl.ports import Clock
from noetl.worker.steps.reporter import Reporter

Item = tuple[int, Any, str | None]  # index, value, key
_MIDDLE: Final = 0.5  # of the jitter: neither earlier nor later


def claim_task(loop: Loop, renderer: Renderer, kinds: Mapping[str, Any], step: str, key: str) -> RunTask | Outcome:
    """Return the rendered task that claims rows; an outcome if that fails."""
    given = loop.cursor or {}
    kind = given["kind"].data if "kind" in given else ""
    claim = given.get("claim")
    if not isinstance(kind, str) or kind not in kinds or claim is None:
        return failed("schema", f"`loop.cursor` of step `{step}` needs a `kind` and a `claim`.")
    extra = {name: value for name, value in given.items() if name not in ("kind", "claim", "key", "auth")}
    fields: dict[str, Value] = {**extra, "query": claim}
    try:
        rendered = renderer.fields(fields, kinds[kind], kind)
        auth = renderer.value(given["auth"].data, "cursor.auth") if "auth" in given else None
    except RenderError as error:
        return failed("template", f"`loop.cursor` of step `{step}`: {error}")
    return RunTask(f"{step}_claim", kind, rendered, {}, {}, 1, key, auth)


def rows_of(outcome: Outcome) -> list[Any] | Outcome:
    """Return the rows of a claim; an outcome if it failed or is malformed."""
    if outcome.status != "ok":
        return outcome
    result = outcome.result
    found = result.get("rows") if isinstance(result, Mapping) else result
    if found is None:
        return []
    if not isinstance(found, list):
        return failed("schema", "the `claim` of the cursor must give rows.")
    return found


def row_keys(loop: Loop, outcome: Outcome) -> tuple[list[str], list[str]]:
    """Return the columns of a claim's rows, and those that `key` names."""
    columns = outcome.result.get("columns") if isinstance(outcome.result, Mapping) else None
    given = (loop.cursor or {}).get("key")
    names = [] if given is None else given.data if isinstance(given.data, list) else [given.data]
    return list(map(str, columns)) if isinstance(columns, list) else [], list(map(str, names))


class Claimed:
    """The rows of one claim: returned, recorded by the control plane, committed."""

    def __init__(self, loop: Loop, reporter: Reporter) -> None:
        self._loop = loop
        self._reporter = reporter
        self._is_recorded = False
        self.count = 0  # rows of the last claim
        self.bytes = 0  # size of all rows, as JSON
        self.is_lost = False  # another worker has the lease: nothing must take effect

    async def confirm(self, outcome: Outcome) -> bool:
        """Record claimed rows while the transaction is open; return whether to commit."""
        rows = rows_of(outcome)
        if isinstance(rows, Outcome):
            return False
        if rows:
            columns, names = row_keys(self._loop, outcome)
            made = tuple(Row(row, row_key(row, columns, names)) for row in rows)
            self.is_lost = not await self._reporter.record(made)
        self.count, self.bytes = len(rows), self.bytes + len(msgspec.json.encode(rows))
        self._is_recorded = True
        return not self.is_lost

    async def settle(self, outcome: Outcome) -> dict[str, Any] | None:
        """Return a failed claim's error; record rows of a kind without transactions."""
        rows = rows_of(outcome)
        if isinstance(rows, Outcome):
            return as_error(rows)
        if not self._is_recorded:
            await self.confirm(outcome)
        self._is_recorded = False
        return None


def is_full(frame: Mapping[str, Any], rows: int, claimed: Claimed, began: int, now: int) -> bool:
    """Return whether another claim like the last one could exceed the frame."""
    if not frame or not claimed.count or rows + claimed.count > int(frame["rows"]):
        return True
    seconds, most = frame.get("seconds"), frame.get("bytes")
    return (seconds is not None and now - began >= seconds * 1000) or (most is not None and claimed.bytes >= most)


async def patiently(claim: Callable[[], Awaitable[Outcome]], clock: Clock, settings: Mapping[str, Any]) -> Outcome:
    """Claim, and retry after transient errors as often as `retries.plugin` says."""
    schedule = runtime_schedule(settings)
    attempt = 1
    while True:
        outcome = await claim()
        if outcome.error is None or not outcome.error.retryable or attempt >= schedule.attempts:
            return outcome
        await clock.sleep(delay_ms(schedule, attempt, _MIDDLE) / 1000)
        attempt += 1


def as_error(outcome: Outcome) -> dict[str, Any]:
    """Return the error of an outcome as a report holds it."""
    found: dict[str, Any] = msgspec.to_builtins(outcome.error)
    return found
