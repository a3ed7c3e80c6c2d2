"""Store large results and load them: a reference is sent in their place.

The reference includes the parts that the server reads. Small results are sent inline. A stored result is loaded only
for a step whose templates read more of it than what is beside the reference, and is verified when it is read. Removes
nothing. Tested in tests/unit/worker/steps/test_results.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, Final

import msgspec

from noetl.blobs import manifests, pieces, stored
from noetl.blobs.parts import selected
from noetl.dsl.tree.playbook import default_label
from noetl.engine.decision.needs_load import StoredResult
from noetl.engine.pipeline.pipeline import Pipeline
from noetl.engine.plan.extract import Wanted, merged, pick
from noetl.engine.tasks.actions import RunTask
from noetl.model.errors import InvalidInput, NoetlError
from noetl.model.manifest import is_list
from noetl.model.outcome import Outcome, failed
from noetl.model.plain_data import MOST_DEPTH, is_deeper
from noetl.model.refs import (
    MOST_BYTES,
    address,
    beside,
    expanded,
    is_manifest,
    is_ref,
    same_values,
    visible,
    with_views,
)
from noetl.ports import Blobs, Clock
from noetl.worker.secrets.redact import Secrets
from noetl.worker.tool_context import SMALL

INLINE_MAX_BYTES: Final = 64 * 1024
REFERENCE_BYTES: Final = 2 * 1024  # of a reference with its preview; a smaller result stays inline
PREVIEW_MAX_BYTES: Final = 1024
_MOST_KEYS: Final = 200


class StoredResults:
    """Results over a blob store."""

    def __init__(self, blobs: Blobs, clock: Clock) -> None:
        self._blobs = blobs
        self._clock = clock
        self._recent: dict[str, Any] = {}  # parts of lists, as they were read

    async def keep(
        self, task: RunTask, outcome: Outcome, where: Mapping[str, Any]
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        """Store a large result; return the outcome, and the reference if stored."""
        if isinstance(outcome.result, SMALL):
            return outcome, None
        kept, ref = await self._kept(task, outcome, where)
        if outcome.status != "ok" and kept.error is not outcome.error:
            return msgspec.structs.replace(outcome, result=None), None  # its failure is reported, without its body
        return kept, ref

    async def _kept(
        self, task: RunTask, outcome: Outcome, where: Mapping[str, Any]
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        also = same_values(outcome.result)  # stored once
        result = {name: item for name, item in outcome.result.items() if name not in also} if also else outcome.result
        try:
            data = await pieces.encoded(result)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return failed("schema", f"the result of `{task.label}` is not plain data: {error}"), None
        may_be_deep = data.count(b"[") + data.count(b"{") > MOST_DEPTH
        if may_be_deep and await stored.aside(len(data), is_deeper, result, MOST_DEPTH):
            message = f"the result of `{task.label}` is nested deeper than {MOST_DEPTH} levels; give flatter data"
            return failed("schema", message), None
        odd = await stored.aside(len(data), _not_a_number, result, "result") if b"null" in data else None
        if odd is not None:
            return failed("schema", f"`{odd}` of `{task.label}` is no number that JSON has; give null or text"), None
        limits = task.spec.get("limits")
        most = limits.get("max_result_bytes") if isinstance(limits, Mapping) else None
        most = MOST_BYTES if most is None else int(most)
        if len(data) > most:
            return _too_large(task, len(data), most), None
        secrets: Secrets | None = where.get("secrets")
        masked = result
        if secrets is not None and await stored.aside(len(data), secrets.may_be_in, data):
            masked = await stored.aside(len(data), secrets.value, result)
        if masked is not result:
            data = await pieces.encoded(masked)
        try:
            return outcome, await self._put(task, masked, data, where, also)
        except InvalidInput as error:
            return failed("schema", f"`spec.result` of `{task.label}`: {error}"), None
        except (NoetlError, OSError) as error:
            message = f"the result of `{task.label}` ({len(data):,} bytes) could not be stored: {error}"
            return failed("reference", message, code="NOT_STORED", retryable=True, sent=True), None

    async def _put(
        self, task: RunTask, result: Any, data: bytes, where: Mapping[str, Any], also: Mapping[str, str]
    ) -> Mapping[str, Any] | None:
        controls = task.spec.get("result")
        controls = controls if isinstance(controls, Mapping) else {}
        place = controls.get("store")
        place = place if isinstance(place, Mapping) else {"kind": place or "auto"}
        limit = int(_given(controls.get("inline_max_bytes"), INLINE_MAX_BYTES))
        if place.get("kind") == "inline" or len(data) <= min(limit, REFERENCE_BYTES):
            return None
        room = where["room"](max(limit, INLINE_MAX_BYTES)) if "room" in where else INLINE_MAX_BYTES
        if len(data) <= min(limit, room):
            return None
        read: Wanted = where["wanted"]() if "wanted" in where else False
        whole = with_views(result, also)
        extracted = await stored.aside(len(data), light, whole, read, min(room, INLINE_MAX_BYTES))
        extracted |= selected(whole, controls.get("select") or ())
        ref = _address(task, where)
        store = str(place.get("kind") or "auto")
        store = manifests.shelf(store, len(data))
        packing = str(place.get("compression") or "none")
        if packing not in stored.PACKINGS:
            raise InvalidInput(f"results cannot be packed with `{packing}` here; use {' or '.join(stored.PACKINGS)}")
        now = self._clock.now()
        terms = stored.terms(place.get("scope"), stored.expiry(place.get("ttl"), now), now)
        meta = await stored.put(self._blobs, ref, data, store, stored.JSON, packing, terms, also)
        made = stored.reference(ref, store, meta, terms["scope"], terms["expires_at"])
        preview = int(_given(controls.get("preview_max_bytes"), PREVIEW_MAX_BYTES))
        made |= {"extracted": extracted, "preview": data[:preview].decode(errors="ignore")}
        made |= _keys(whole)
        return made

    async def name(self, made: Mapping[str, Any]) -> None:
        """Make a manifest readable by its address alone; else its reference is read."""
        with suppress(NoetlError, OSError):
            await manifests.put_manifest(self._blobs, made, self._clock.now())

    async def load(self, reference: Mapping[str, Any]) -> Any:
        """Return the value of a reference or compact result; raises BadReference."""
        if not is_ref(reference):
            return await self.filled(expanded(reference), True)
        return await manifests.value(self._blobs, reference, self._clock.now())

    async def items(self, source: Mapping[str, Any], start: int, count: int) -> list[Any]:
        """Return a range of a stored list; raises BadReference."""
        return await manifests.items(self._blobs, source, start, count, self._clock.now(), self._recent)

    async def filled(self, value: Any, read: Wanted, loaded: dict[str, Any] | None = None) -> Any:
        """Return a result with the stored parts that are read, each `loaded` once.

        Raises BadReference.
        """
        loaded = {} if loaded is None else loaded
        if not is_ref(value):
            return await self._parts(value, read, loaded)
        shown = visible(value)
        if _is_there(shown, read):
            return shown
        if _only_some(value, read):
            own: Any = await self._few(value, read)
        elif value["ref"] in loaded:
            own = loaded[value["ref"]]
        else:
            own = loaded[value["ref"]] = await self.load(value)
        labels = await self._parts(beside(value), read, loaded)
        if isinstance(own, Mapping):
            return {**labels, **own}
        return {**labels, "data": own} if labels else own

    async def _few(self, value: Mapping[str, Any], read: Wanted) -> list[Any]:
        """Return a stored list with only those items loaded that templates read."""
        found: list[Any] = [None] * value["total"]
        for at in (key for key in (read if isinstance(read, Mapping) else ()) if isinstance(key, int)):
            if at < len(found):
                (found[at],) = await self.items(value, at, 1)
        return found

    async def seen(self, step: str, value: Any, read: Wanted) -> Any:
        """Return a step's result as templates see it, with its address and fields."""
        found = await self.filled(value, read)
        return StoredResult(found, visible(value), default_label(step)) if is_ref(value) else found

    async def adopt(self, value: Any, read: Wanted) -> tuple[Any, Mapping[str, Any] | None]:
        """Return a child's result, and the form in which it is kept if that is another."""
        found = await self.load(value)
        if not is_ref(value) or beside(value):
            return found, None if expanded(value) is value else value
        return found, {**value, "extracted": {**(value.get("extracted") or {}), **light(found, read)}, **_keys(found)}

    async def _parts(self, value: Any, read: Wanted, loaded: dict[str, Any]) -> Any:
        if isinstance(value, Mapping):
            inner = merged(read, read.get("data", {})) if isinstance(read, Mapping) and "data" not in value else read
            return {
                key: await self.filled(item, inner if isinstance(inner, bool) else inner.get(key, False), loaded)
                if isinstance(item, Mapping | list)
                else item
                for key, item in value.items()
            }
        if isinstance(value, list) and any(map(is_ref, value)):
            return [
                await self.filled(item, read if isinstance(read, bool) else read.get(at, False), loaded)
                for at, item in enumerate(value)
            ]
        return value


def room_in(pipeline: Pipeline, limit: int) -> int:
    """Return how many bytes of a limit are left for the current task's result.

    The results of other tasks count, and a reference for each task that has not run.
    """
    label, results = pipeline.task.label, pipeline.memory.results
    others = [held.kept for name, held in results.items() if name != label]
    left = len(pipeline.tasks) - 1 - len(others)
    return max(0, limit - sum(len(msgspec.json.encode(kept)) for kept in others) - left * REFERENCE_BYTES)


def _not_a_number(value: Any, path: str) -> str | None:
    """Return the path of a NaN or infinite number, which JSON would write as null."""
    if isinstance(value, float):
        return None if isfinite(value) else path
    if isinstance(value, Mapping):
        parts = (_not_a_number(item, f"{path}.{key}") for key, item in value.items())
    elif isinstance(value, list | tuple):
        parts = (_not_a_number(item, f"{path}[{at}]") for at, item in enumerate(value))
    else:
        return None
    return next((part for part in parts if part is not None), None)


def _given(value: Any, default: int) -> Any:
    return default if value is None else value


def light(result: Any, read: Wanted, most: int = INLINE_MAX_BYTES) -> dict[str, Any]:
    """Return the parts of a map that the server reads, up to a total size."""
    found: dict[str, Any] = {}
    if not isinstance(result, Mapping) or not isinstance(read, Mapping):
        return found
    for key, part in pick(result, read).items():
        size = len(msgspec.json.encode(part))
        if size <= most:
            found[key] = part
            most -= size
    return found


def _keys(result: Any) -> dict[str, Any]:
    """Return the keys of a map, unless there are many."""
    return {"keys": [str(key) for key in result]} if isinstance(result, Mapping) and len(result) <= _MOST_KEYS else {}


def _is_there(shown: Mapping[str, Any], read: Wanted) -> bool:
    """Return whether only the address of a stored result is read."""
    return not read or (read is not True and all(key in ("_ref", "_store") and key in shown for key in read))


def _only_some(value: Mapping[str, Any], read: Wanted) -> bool:
    """Return whether templates read a stored list only by non-negative indexes."""
    return (
        isinstance(read, Mapping)
        and is_manifest(value)
        and is_list(value)
        and all(isinstance(key, int) and key >= 0 for key in read)
    )


def _address(task: RunTask, where: Mapping[str, Any]) -> str:
    return address(
        where["execution_id"],
        where["step"],
        task.label,
        where["number"],
        task.attempt,
        index=where.get("index"),
        visit=task.visit,
        delivery=where.get("delivery", 1),
    )


def _too_large(task: RunTask, size: int, most: int) -> Outcome:
    message = (
        f"the result of `{task.label}` has {size:,} bytes, and at most {most:,} are accepted; give back less, write it to "
        "a file or table, or raise `limits.max_result_bytes`"
    )
    return failed("schema", message, code="RESULT_TOO_LARGE", details={"bytes": size, "most": most})
