"""`case`: its rules become arcs, writes, tasks that write, and retries.

Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from typing import Any, Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.conditions import conjunction, expression_of, negation, of_steps, template
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, Record, items_of, plain_name, value, word
from noetl.dsl.dialects.lowering.names import ENVELOPE, PREVIOUS, RESULT, reads_any, renamed, replaced
from noetl.dsl.dialects.lowering.pipelines import Pipeline, add_sinks, sink_task, unless_of
from noetl.dsl.dialects.lowering.retries import lower_retry
from noetl.dsl.dialects.lowering.routing.arcs import Group, groups_of, named, router, targets
from noetl.dsl.dialects.lowering.routing.rules import Rule, expression_or_nothing, require_a_route, rules_of_case
from noetl.dsl.dialects.lowering.tasks import add_sets
from noetl.dsl.reading.nodes import Entry, MapNode, Node, Scalar

_SETS: Final = ("set", "vars", "set_ctx")
_PASSED_ON: Final = ("response", "error", "result", "this")
_GIVEN: Final = {
    "response": "args.response", "error": "args.error", "result": "args.result", "this": "args.this",
    "error.status": "args.error.details.status", "error.status_code": "args.error.details.status",
}  # fmt: skip


def lower_case(step: Fields, pipeline: Pipeline, record: Record, *, loops: bool) -> None:
    """Turn `case` into arcs, writes and tasks that write."""
    key, written = step.pop("case")
    rules = list(rules_of_case(written))
    groups: list[Group] = []
    above: list[str] = []
    for rule in rules:
        _show_sets(rule)
        _lower_retry(rule, pipeline, record)  # before the tasks that write
        _lower_call(rule, pipeline, record)
    for rule in rules:
        if not rule.then.entries:
            continue  # it only called again
        expression = negation(above) if rule.when is None and above else expression_or_nothing(rule.when)
        if rule.about.moment == "start":
            _lower_at_the_start(rule, pipeline, record, loops=loops)
            continue
        require_a_route(rule, loops=loops)
        _lower_sinks(rule, expression, pipeline, record, key)
        _lower_sets(rule, expression, step, pipeline, record, loops=loops)
        group = _routes(rule, record)
        if group is not None:
            record.note(by.CASE_NEXT, rule.at)
            groups.append(group)
        if expression:
            above.append(expression)
    if groups:
        following = step.get("next")
        step.put("next", router([*groups, *groups_of(following, record)], following, key), key)


def _show_sets(rule: Rule) -> None:
    """Put what a rule sets where its sinks and arcs read it: they ran after it."""
    if _has_sink_step(rule) and "call" not in rule.then:  # else the pages have the sinks
        return  # the arc to it sets before they read
    meant: dict[str, str] = {}
    for name in _SETS:
        for key, node in _map_of(rule.then.get(name)).entries if name in rule.then else ():
            target = key.text.removeprefix("vars.").removeprefix("ctx.")
            meant |= {f"{scope}.{target}": expression_of(node) for scope in ("ctx", "vars")}
    for name in ("sink", "save", "next") if meant else ():
        if name in rule.then:
            rule.then.put(name, replaced(rule.then.entries[name].value, meant))


def _lower_at_the_start(rule: Rule, pipeline: Pipeline, record: Record, *, loops: bool) -> None:
    """Turn writes at the start of a step into tasks before the others."""
    for name in ("next", "retry", "call", "collect"):
        if name in rule.then:
            fix = "Route from the step before: give it an arc to this step and one to the other."
            reason = f"`{name}` at the start of a step is not possible: a step is routed when it ends."
            raise NoEquivalentError(rule.then.key(name), reason, fix)
    if loops:
        fix = "Write it on the step before the loop."
        raise NoEquivalentError(rule.when or rule.at, "A loop would write at the start of each item.", fix)
    tasks: list[tuple[str, MapNode]] = []
    for name, entry in rule.then.entries.items():
        if name in ("sink", "save"):
            record.note(by.CASE_SINK, entry.key)
            tasks += [("sink", sink_task(item, record)) for item in items_of(entry.value)]
        else:
            record.note(by.CASE_SET, entry.key)
            task = Fields(MapNode(entry.key.start, entry.key.end, ()))
            task.put("kind", value("noop", entry.key), entry.key)
            add_sets(task, _map_of(entry.value), record, RESULT, entry.key)
            tasks.append(("begin", task.built()))
    pipeline.prepend(tasks, unless_of(rule.about.rest) if rule.about.rest else "", rule.at)


def _map_of(node: Node | None) -> MapNode:
    if not isinstance(node, MapNode):
        assert node is not None
        raise NoEquivalentError(node, "`set` is a map.", "Write `set: { <name>: … }`.")
    return node


def _lower_retry(rule: Rule, pipeline: Pipeline, record: Record) -> None:
    """Turn `retry` of a rule into one of the step, with the same condition."""
    if "retry" not in rule.then or rule.about.moment == "start":
        return
    entry = rule.then.pop("retry")
    if "event." in rule.about.rest:
        raise NoEquivalentError(rule.at, "A retry cannot depend on this event.", "Compare `event.name` only.")
    if rule.about.moment == "loop":
        fix = "Write `retry` for the event step.done or step.failed."
        raise NoEquivalentError(entry.key, "A loop that ended is not repeated; its items are.", fix)
    status = {"error": "outcome.status == 'error'", "ok": "outcome.status == 'ok'", "item": "outcome.status == 'ok'"}
    when = template(conjunction(status.get(rule.about.moment, ""), rule.about.rest) or "outcome.status == 'error'")
    settings = entry.value
    if isinstance(settings, Scalar):
        settings = value({} if settings.value is True else {"max_attempts": settings}, settings)
    written = value([{"when": word(when, rule.when or rule.at), "then": settings}], entry.key)
    lower_retry(pipeline, written, record, entry.key)


def _lower_call(rule: Rule, pipeline: Pipeline, record: Record) -> None:
    """Turn `call` and `collect` of a rule into the pages of a `retry`."""
    if rule.about.moment == "start" or {"call", "collect"}.isdisjoint(rule.then.entries):
        return
    if "call" not in rule.then:
        reason = "`collect` without `call` collects nothing."
        raise NoEquivalentError(rule.then.key("collect"), reason, "Write `call: { params: … }` beside it.")
    entry = rule.then.pop("call")
    if rule.about.moment == "loop":
        fix = "Write `call` for the event step.done."
        raise NoEquivalentError(entry.key, "A loop that ended is not called again; its items are.", fix)
    record.note(by.CASE_CALL, entry.key)
    data: dict[str, Any] = {"next_call": entry.value}
    if "collect" in rule.then:
        data["collect"] = rule.then.pop("collect").value
    sinks = [rule.then.pop(name).value for name in ("sink", "save") if name in rule.then]
    if sinks:
        data["per_iteration"] = {"sink": sinks[0]}
    lower_retry(pipeline, value([{"when": rule.when, "then": data}], entry.key), record, entry.key)


def _lower_sinks(rule: Rule, expression: str, pipeline: Pipeline, record: Record, key: Scalar) -> None:
    written = next((rule.then.get(name) for name in ("sink", "save") if name in rule.then), None)
    if written is None:
        return
    if _has_sink_step(rule):
        _add_sink_step(rule, written, pipeline, record)
        return
    rest = rule.about.rest if rule.when is not None else expression
    if rest:
        if "event." in rest:
            raise NoEquivalentError(rule.at, "A sink cannot depend on this event.", "Compare `event.name` only.")
        guard = renamed(value(template(unless_of(rest)), rule.when or rule.at), PREVIOUS, record, by.NAMES)
        rest = expression_of(guard)
    add_sinks(pipeline, written, rest, record, by.CASE_SINK, key)


def _has_sink_step(rule: Rule) -> bool:
    """Return whether what a rule writes needs a step: the step itself has ended."""
    return rule.about.moment in ("error", "loop") and not {"sink", "save"}.isdisjoint(rule.then.entries)


def _add_sink_step(rule: Rule, written: Node, pipeline: Pipeline, record: Record) -> None:
    """Add a step between this one and those that the rule leads to."""
    at = rule.at
    name = _free_name(f"{pipeline.name}_sink", record)
    record.note(by.SINK_STEP, at)
    given = {each: each for each in _PASSED_ON}
    tasks = [sink_task(item, record, {**given, "result": "args.result"}) for item in items_of(written)]
    following = rule.then.pop("next").value if "next" in rule.then else None
    read = [
        each
        for each in _PASSED_ON
        if any(reads_any(task, frozenset({each, "args"})) for task in tasks)
        or (following is not None and reads_any(following, frozenset({each})))
    ]
    args = {each: template(ENVELOPE[each]) for each in read}
    items: list[Any] = [{f"sink_{number}" if number > 1 else "sink": task} for number, task in enumerate(tasks, 1)]
    leads_on = any(True for _ in targets(following))
    if not leads_on and rule.about.moment == "error":
        rules = [{"else": {"then": {"do": "fail"}}}]
        items.append({"failed": {"kind": "noop", "spec": {"policy": {"rules": rules}}}})
    added: dict[str, Any] = {"step": name, "tool": items}
    if following is not None:
        added["next"] = renamed(following, _GIVEN, record, by.NAMES)
    made = value(added, at)
    assert isinstance(made, MapNode)
    record.add_step(made)
    rule.then.put("next", value([{"step": name} | ({"args": args} if args else {})], at), at)


def _free_name(wanted: str, record: Record) -> str:
    names = (wanted, *(f"{wanted}_{number}" for number in range(2, 1000)))
    taken = record.names | {plain_name(step.get("step")) or "" for step in record.added}
    return next(name for name in names if name not in taken)


def _lower_sets(rule: Rule, expression: str, step: Fields, pipeline: Pipeline, record: Record, *, loops: bool) -> None:
    sets = [rule.then.pop(name) for name in _SETS if name in rule.then]
    if not sets:
        return
    record.note(by.CASE_SET, sets[0].key)
    if "next" in rule.then:
        together = Fields(_map_of(sets[0].value))
        for entry in sets[1:]:
            for name, each in Fields(_map_of(entry.value)).entries.items():
                together.add(each, name)
        rule.then.put("set", together.built(), sets[0].key)
        return
    target, meant = step, ENVELOPE
    if loops and rule.about.moment != "loop":  # of each item
        target, meant = pipeline.main, RESULT
        expression = rule.about.rest
    always = not expression or (not rule.about.rest and rule.about.moment in ("ok", "loop"))
    for entry in sets:
        written = _map_of(entry.value) if always else _guarded(_map_of(entry.value), expression)
        add_sets(target, written, record, meant, entry.key)


def _guarded(written: MapNode, expression: str) -> MapNode:
    entries = []
    for key, node in written.entries:
        name = (
            key.text if key.text.partition(".")[0] in ("ctx", "iter", "step") and "." in key.text else f"ctx.{key.text}"
        )
        text = f"({expression_of(node)}) if ({expression}) else ({name} | default(none))"
        entries.append(Entry(key, word(template(text), node)))
    return MapNode(written.start, written.end, tuple(entries), written.flow)


def _routes(rule: Rule, record: Record) -> Group | None:
    if "next" not in rule.then:
        return None
    key, following = rule.then.pop("next")
    arcs = [named(target) for target in targets(following)]
    if not arcs:
        raise NoEquivalentError(key, "`next` names no step.", "Write `next: <step>`.")
    sets = rule.then.get("set")
    if sets is not None:
        first = Fields(arcs[0])
        add_sets(first, _map_of(sets), record, ENVELOPE, key)
        arcs[0] = first.built()
    return Group(of_steps(rule.when) if isinstance(rule.when, Scalar) else rule.when, arcs, rule.at)
