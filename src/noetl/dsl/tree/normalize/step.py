"""Normalize steps: gate, loop, pipeline and router in all their forms."""

from __future__ import annotations

from msgspec.structs import replace

from noetl.dsl.grammar.step import NO_MATCH
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.normalize.settings import settings
from noetl.dsl.tree.normalize.task import rule_parts, tasks, with_assertions, with_output
from noetl.dsl.tree.normalize.values import assigns, first, optional, plain_text, scalar, text, value, values
from noetl.dsl.tree.playbook import AdmitRule, Arc, Loop, Router, Step, Value

_LOOP_SHORTHANDS = ("mode", "max_in_flight", "frame")


def step(node: MapNode) -> Step | None:
    """Return the step of a map; None where it has no name."""
    name = text(node.get("step"))
    if name is None:
        return None
    spec = node.get("spec")
    policy = spec.get("policy") if isinstance(spec, MapNode) else None
    gate = policy.get("admit") if isinstance(policy, MapNode) else None
    router, own = _router(node.get("next")), _spec(spec)
    inner = own.pop("output", None)
    if router is not None and "on_no_match" in router.spec:
        router, unmatched = _without_no_match(router)
        own.setdefault("no_next_is_error", unmatched)
    pipeline = with_output(tasks(node.get("tool"), name), node.get("output"), inner.at if inner else None)
    return Step(
        name=name,
        tasks=with_assertions(pipeline, node.get("assert")),
        router=router,
        admit=_admit(gate),
        loop=_loop(node.get("loop")),
        input=values(first(node, "input", "args")),
        sets=assigns(node, envelope=True),
        spec=own,
        compensate=text(node.get("compensate")),
        desc=plain_text(first(node, "desc", "description")),
        at=node,
        name_at=scalar(node.get("step")),
        compensate_at=scalar(node.get("compensate")),
        admit_at=gate,
    )


def _spec(node: Node | None) -> dict[str, Value]:
    found = settings(node)
    policy = found.pop("policy", None)
    if policy and isinstance(policy.data, dict):
        rest = {key: data for key, data in policy.data.items() if key != "admit"}
        if rest:
            found["policy"] = Value(rest, policy.at)
    return found


def _without_no_match(router: Router) -> tuple[Router, Value]:
    """Return a router without `on_no_match`, and the setting that it means."""
    given = router.spec["on_no_match"]
    is_error = dict(NO_MATCH).get(str(given.data), given.data) == "error"
    spec = {name: one for name, one in router.spec.items() if name != "on_no_match"}
    return replace(router, spec=spec), Value(is_error, given.at)


def _admit(node: Node | None) -> tuple[AdmitRule, ...] | None:
    rules = node.get("rules") if isinstance(node, MapNode) else None
    if not isinstance(rules, ListNode):
        return None
    admit: list[AdmitRule] = []
    for item in rules:
        parts = rule_parts(item)
        if parts:
            allow = parts[1].get("allow") if isinstance(parts[1], MapNode) else None
            skips = isinstance(allow, Scalar) and allow.value == "skip"
            admit.append(AdmitRule(parts[0], skips or (isinstance(allow, Scalar) and allow.value is True), item, skips))
    return tuple(admit)


def _loop(node: Node | None) -> Loop | None:
    if not isinstance(node, MapNode):
        return None
    spec = settings(node.get("spec"))
    for name in _LOOP_SHORTHANDS:
        short = node.get(name)
        if short is not None:
            spec.setdefault(name, value(short))
    cursor = node.get("cursor")
    mode = spec.get("mode")
    if mode is not None and mode.data == "cursor":
        spec["mode"] = Value("parallel", mode.at)
    elif mode is None and "frame" in spec:
        spec["mode"] = Value("parallel", spec["frame"].at)
        spec.setdefault("max_in_flight", Value(1))
    return Loop(
        items=optional(node.get("in")),
        iterator=text(node.get("iterator")) or "item",
        cursor=values(cursor) if isinstance(cursor, MapNode) else None,
        spec=spec,
        item_timeout_ms=optional(node.get("item_timeout_ms")),
        total_timeout_ms=optional(node.get("total_timeout_ms")),
        at=node,
        iterator_at=node.get("iterator"),
    )


def _router(node: Node | None) -> Router | None:
    if isinstance(node, Scalar) and node.value is not None:
        return Router((_named(node),), at=node)
    if isinstance(node, ListNode):
        return _listed(node)
    if not isinstance(node, MapNode):
        return None
    spec = values(node.get("spec"))
    mode = spec.pop("mode", None)
    arcs = node.get("arcs")
    listed = _arcs(arcs) if isinstance(arcs, ListNode) else ()
    return Router(listed, "inclusive" if mode and mode.data == "inclusive" else "exclusive", spec, node)


def _listed(node: ListNode) -> Router:
    """Return the router of a list: inclusive for names only, else exclusive."""
    all_names = all(isinstance(item, Scalar) for item in node)
    arcs = _arcs(node)
    return Router(arcs, "inclusive" if all_names and len(arcs) > 1 else "exclusive", at=node)


def _arcs(node: ListNode) -> tuple[Arc, ...]:
    arcs: list[Arc] = []
    for item in node:
        if isinstance(item, Scalar) and item.value is not None:
            arcs.append(_named(item))
        elif isinstance(item, MapNode):
            target = text(item.get("step"))
            if target is not None:
                arcs.append(_arc(item, target))
    return tuple(arcs)


def _named(node: Scalar) -> Arc:
    return Arc(node.text, at=node, step_at=node)


def _arc(node: MapNode, target: str) -> Arc:
    return Arc(
        step=target,
        when=optional(node.get("when"), envelope=True),
        args=values(first(node, "args", "input"), envelope=True),
        sets=assigns(node, envelope=True),
        label=text(node.get("label")),
        spec=values(node.get("spec")),
        at=node,
        step_at=scalar(node.get("step")),
    )
