"""Limits on executions: `concurrency`, `rate`, and those of the server.

A limit of the server counts the executions of all playbooks whose path matches a pattern; `above` is one beside the playbook's
own. The group of an execution is what `key` renders to; data under the name `key` would be masked for readers. The store decides
whether a place is free, in the transaction of the start. Tested in tests/unit/engine/routing/test_slots.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from noetl.dsl.grammar.document import LEAST_RATE, MOST_COUNT, MOST_KEY
from noetl.engine.decision.evaluations import Evaluations
from noetl.engine.decision.scope import Scope, functions, number, render
from noetl.engine.plan.plan import Plan
from noetl.engine.state.execution import Execution
from noetl.engine.state.writes import plain
from noetl.expr import TemplateError, first_undefined
from noetl.model.commit import Slot
from noetl.model.errors import InvalidPayload

_SETTINGS = ("concurrency", "rate")


def limits_of(plan: Plan, state: Execution, at: int, evaluations: Evaluations | None = None) -> dict[str, Any] | None:
    """Return the limits of an execution, None without any. Raises InvalidPayload."""
    concurrency, rate = (plan.setting(name) for name in _SETTINGS)
    above = plan.playbook_limit(state.path)
    if not isinstance(concurrency, Mapping) and not isinstance(rate, Mapping):
        return None if above is None else {**above, "on_limit": "queue", "server": True}
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
    if above is not None and "limit" in found:
        found["above"] = above
    elif above is not None:
        found |= {**above, "on_limit": "queue", "server": True}
    return found


def renewed(limits: Mapping[str, Any], plan: Plan, state: Execution) -> dict[str, Any] | None:
    """Return the limits of a waiting execution with that of the server as it is now."""
    above = plan.playbook_limit(state.path)
    if not limits.get("server"):
        found = {name: value for name, value in limits.items() if name != "above"}
        if above is not None:
            found |= {"above": above} if "limit" in found else {**above, "on_limit": "queue", "server": True}
    elif above is not None:
        found = {**limits, **above}
    elif "rate" in limits:
        found = {"rate": limits["rate"], "group": f"rate {limits['rate']['group']}"}
    else:
        return None
    return without_held(found, (state.parent or {}).get("groups") or ())


def without_held(limits: Mapping[str, Any], groups: Collection[str]) -> dict[str, Any] | None:
    """Return the limits without those whose place a parent holds, which waits for it."""
    above = limits.get("above")
    if above is not None and above["group"] in groups:
        limits = {name: value for name, value in limits.items() if name != "above"}
        above = None
    if limits["group"] not in groups:
        return dict(limits)
    return None if above is None else {**above, "on_limit": "queue", "server": True}


def slot_of(limits: Mapping[str, Any], at: int) -> Slot:
    """Return what the store checks when an execution with these limits begins."""
    rate = limits.get("rate") or {}
    interval = round(1_000_000 / rate["per_second"]) if rate else 0
    above = limits.get("above") or {"group": "", "limit": 0}
    own = (limits["group"], limits.get("limit", 0))
    return Slot(*own, rate.get("group", ""), interval, rate.get("burst", 1), at, above["group"], above["limit"])


def held_by(slot: Mapping[str, Any], running: int, above: int, turn_us: int, now: int) -> tuple[str, int]:
    """Return which limit an execution waits for, and when its rate admits one.

    `running` and `above` are how many hold a place under its limits, `turn_us` is the turn of its rate in the store.
    """
    rate = slot.get("rate")
    first = 0 if rate is None else round(turn_us / 1000 - (int(rate["burst"]) - 1) * 1000 / float(rate["per_second"]))
    if slot.get("limit") and running >= slot["limit"]:
        return "limit", 0
    if "above" in slot and above >= slot["above"]["limit"]:
        return "above", 0
    return ("rate", max(first, now)) if rate is not None else ("limit", 0)


def held_groups(state: Execution) -> list[str]:
    """Return the groups in which an execution and its parents hold a place."""
    above = (state.parent or {}).get("groups") or ()
    own = [] if state.slot is None else [state.slot, *([state.slot["above"]] if "above" in state.slot else [])]
    return list(dict.fromkeys([*above, *(str(one["group"]) for one in own)]))


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
