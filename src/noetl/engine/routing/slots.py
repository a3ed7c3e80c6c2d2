"""Limits on executions: `executor.spec.concurrency` and `executor.spec.rate`.

The group of an execution is what `key` renders to; data under the name `key` would be masked for readers. The store decides
whether a place is free, in the transaction of the start. Tested in tests/unit/engine/routing/test_slots.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.decision.evaluations import Evaluations
from noetl.engine.decision.scope import Scope, functions, number, render
from noetl.engine.plan.plan import Plan
from noetl.engine.state.execution import Execution
from noetl.engine.state.writes import plain
from noetl.expr import TemplateError, first_undefined
from noetl.model.commit import Slot
from noetl.model.errors import InvalidPayload

MOST_KEY = 200  # characters
MOST_COUNT = 1_000_000
LEAST_RATE = 1 / 86_400  # per second: one a day; stores have no room for any interval
_SETTINGS = ("concurrency", "rate")


def limits_of(plan: Plan, state: Execution, at: int, evaluations: Evaluations | None = None) -> dict[str, Any] | None:
    """Return the limits of an execution, None without any. Raises InvalidPayload."""
    concurrency, rate = (plan.setting(name) for name in _SETTINGS)
    if not isinstance(concurrency, Mapping) and not isinstance(rate, Mapping):
        return None
    scope, calls = Scope(state, {}, evaluations=evaluations), functions(state, at)
    found: dict[str, Any] = {}
    for name, setting in zip(_SETTINGS, (concurrency, rate), strict=True):
        if not isinstance(setting, Mapping):
            continue
        try:
            one: dict[str, Any] = {"group": _key(name, setting.get("key"), state.path, scope, calls)}
            one |= {
                field: _count(name, field, setting, scope, calls) for field in ("limit", "burst") if field in setting
            }
            per_second = number(setting.get("per_second"), scope, calls)
        except TemplateError as error:
            raise InvalidPayload(f"`executor.spec.{name}` cannot be evaluated: {error.message}") from None
        if name == "concurrency":
            found |= {"limit": 1, "on_limit": str(setting.get("on_limit") or "queue"), **one}
        elif per_second is None or per_second < LEAST_RATE:
            raise InvalidPayload("`executor.spec.rate.per_second` is not a number of at least 1/86400, one a day.")
        else:
            found["rate"] = {"burst": 1, **one, "per_second": per_second}
            found.setdefault("group", f"rate {one['group']}")  # under which it waits
    return found


def slot_of(limits: Mapping[str, Any], at: int) -> Slot:
    """Return what the store checks when an execution with these limits begins."""
    rate = limits.get("rate") or {}
    interval = round(1_000_000 / rate["per_second"]) if rate else 0
    return Slot(limits["group"], limits.get("limit", 0), rate.get("group", ""), interval, rate.get("burst", 1), at)


def held_groups(state: Execution) -> list[str]:
    """Return the groups in which an execution and its parents hold a place."""
    above = (state.parent or {}).get("groups") or ()
    return list(dict.fromkeys([*above, *([] if state.slot is None else [str(state.slot["group"])])]))


def _key(name: str, key: Any, path: str, scope: Scope, calls: Mapping[str, Any]) -> str:
    if key is None:
        return path
    rendered = render(key, scope, calls)
    missing = first_undefined(rendered)
    if missing is not None:
        missing.fail()
    text = str(plain(rendered))
    if not text or len(text) > MOST_KEY:
        raise InvalidPayload(
            f"`executor.spec.{name}.key` has {len(text)} characters; it needs at least 1 and at most {MOST_KEY}."
        )
    return text


def _count(name: str, field: str, setting: Mapping[str, Any], scope: Scope, calls: Mapping[str, Any]) -> int:
    found = number(setting[field], scope, calls)
    if found is None or not 1 <= found <= MOST_COUNT or found != int(found):
        raise InvalidPayload(f"`executor.spec.{name}.{field}` is not a whole number from 1 to {MOST_COUNT:,}.")
    return int(found)
