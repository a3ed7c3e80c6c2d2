"""Routes: the rules of `case`, and the `then` and `else` of arcs.

Rules that route are arcs before those of `next`, in file order. Rules that lead to several steps take all of them, so the
router is then inclusive, and each arc excludes the rules above it. Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.conditions import (
    Condition,
    condition_of,
    conjunction,
    expression_of,
    is_template_condition,
    negation,
    template,
)
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, Record, items_of, plain_name, value, word
from noetl.dsl.dialects.lowering.names import ENVELOPE, PREVIOUS, RESULT, reads_any, renamed
from noetl.dsl.dialects.lowering.pipelines import Pipeline, add_sinks, sink_task, unless_of
from noetl.dsl.dialects.lowering.retries import lower_retry
from noetl.dsl.dialects.lowering.tasks import add_sets
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar

_SUCCESS: Final = "event.name != 'step.failed'"
_PASSED_ON: Final = ("response", "error", "result", "this")
_CALLS_AGAIN: Final = frozenset({"retry", "call", "collect"})
_KNOWN: Final = frozenset({"next", "sink", "save", "set", "vars", "set_ctx"}) | _CALLS_AGAIN


class Group(Struct):
    """Steps that one rule leads to, taken together."""

    when: Node | None
    arcs: list[MapNode]
    at: Node


class Rule(Struct):
    """One rule of `case`."""

    when: Node | None
    about: Condition
    then: Fields
    at: Node


def lower_case(step: Fields, pipeline: Pipeline, record: Record, *, loops: bool) -> None:
    """Turn `case` into arcs, writes and tasks that write."""
    key, written = step.pop("case")
    rules = list(_rules(written))
    groups: list[Group] = []
    above: list[str] = []
    _lower_calls(rules, pipeline, record, key)
    for rule in rules:
        if not rule.then.entries:
            continue  # it only called again
        expression = negation(above) if rule.when is None and above else _expression(rule.when)
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
        step.put("next", _router([*groups, *_groups(following, record)], following, key), key)


def _lower_calls(rules: list[Rule], pipeline: Pipeline, record: Record, key: Scalar) -> None:
    """Turn rules that call again into what `retry` of a step is."""
    found = [_calls_again(rule) for rule in rules if not _CALLS_AGAIN.isdisjoint(rule.then.entries)]
    if found:
        record.note(by.CASE_RETRY, key)
        lower_retry(pipeline, ListNode(key.start, key.end, tuple(found)), record, key)


def _calls_again(rule: Rule) -> Node:
    """Return the rule of `retry` for a rule of `case`; takes its actions."""
    if rule.about.moment == "loop":
        raise NoEquivalentError(rule.at, "A whole loop is not called again.", "Write the rule for `call.done`.")
    actions = {name: rule.then.pop(name) for name in _CALLS_AGAIN if name in rule.then}
    if "call" in actions:
        data: dict[str, Any] = {"next_call": actions["call"].value}
        if "collect" in actions:
            data["collect"] = actions["collect"].value
        sinks = [rule.then.pop(name).value for name in ("sink", "save") if name in rule.then]
        if sinks:
            data["per_iteration"] = {"sink": sinks[0]}
        return value({"when": rule.when, "then": data}, rule.at)
    if "retry" not in actions:
        raise NoEquivalentError(
            actions["collect"].key,
            "`collect` without `call` collects nothing.",
            "Write `call: { params: … }` beside it.",
        )
    settings = actions["retry"].value
    if not isinstance(settings, MapNode):
        settings = value({"max_attempts": settings} if plain_name(settings) not in (None, "true") else {}, settings)
    event = {"error": "outcome.status == 'error'", "ok": "outcome.status == 'ok'"}.get(rule.about.moment, "")
    asks = conjunction(event, rule.about.rest) if event or rule.about.rest else ""
    when = {"when": value(template(asks), rule.when or rule.at)} if asks else {}
    return value(when | {"then": settings}, rule.at)


def _rules(written: Node) -> Iterator[Rule]:
    for item in items_of(written):
        if not isinstance(item, MapNode):
            raise NoEquivalentError(item, "A rule of `case` is a map.", "Write `- when: …` with `then: { next: … }`.")
        when, body = item.get("when"), item.get("then")
        if "else" in item:
            other = item.get("else")
            body = body or (other.get("then") if isinstance(other, MapNode) and "then" in other else other)
        elif when is None:
            raise NoEquivalentError(item, "A rule of `case` has no `when`.", 'Write `when: "{{ … }}"` or `else`.')
        then = Fields(_merged(body, item))
        for name, entry in then.entries.items():
            if name not in _KNOWN:
                raise NoEquivalentError(
                    entry.key,
                    f"`{name}` of a rule of `case` has no counterpart.",
                    "Write `next`, `sink`, `set`, `retry` or `call`; other control is a rule of the task's `spec.policy`.",
                )
        yield Rule(when, _about(when), then, item)


def _merged(body: Node | None, rule: MapNode) -> MapNode:
    """Return the actions of a rule: one map, or a list of maps."""
    if isinstance(body, MapNode):
        return body
    entries: list[Entry] = []
    for item in items_of(body):
        if not isinstance(item, MapNode):
            raise NoEquivalentError(item, "An action of a rule is a map.", "Write `then: { next: <step> }`.")
        entries += item.entries
    if not entries:
        raise NoEquivalentError(
            rule, "A rule of `case` without an action does nothing.", "Write `then: { next: <step> }`."
        )
    names = [entry.key.text for entry in entries]
    if len(set(names)) < len(names):
        raise NoEquivalentError(rule, "A rule of `case` has the same action twice.", "Write two rules.")
    return MapNode(entries[0].key.start, entries[-1].value.end, tuple(entries))


def _about(when: Node | None) -> Condition:
    if when is None:
        return Condition("any", "")
    if not is_template_condition(when):
        raise NoEquivalentError(when, "The condition is no template.", 'Write `when: "{{ … }}"`.')
    found = condition_of(_expression(when))
    if found.moment == "other":
        raise NoEquivalentError(
            when,
            "Nothing is routed or written on this event.",
            "Compare `event.name` with step.done, step.failed or loop.done.",
        )
    return found


def _expression(when: Node | None) -> str:
    return "" if when is None else expression_of(when)


def _lower_sinks(rule: Rule, expression: str, pipeline: Pipeline, record: Record, key: Scalar) -> None:
    written = next((rule.then.get(name) for name in ("sink", "save") if name in rule.then), None)
    if written is None:
        return
    if rule.about.moment in ("error", "loop"):
        _add_sink_step(rule, written, pipeline, record)
        return
    rest = rule.about.rest if rule.when is not None else expression
    if rest:
        if "event." in rest:
            raise NoEquivalentError(rule.at, "A sink cannot depend on this event.", "Compare `event.name` only.")
        guard = renamed(value(template(unless_of(rest)), rule.when or rule.at), PREVIOUS, record, by.NAMES)
        rest = expression_of(guard)
    add_sinks(pipeline, written, rest, record, by.CASE_SINK, key)


def _add_sink_step(rule: Rule, written: Node, pipeline: Pipeline, record: Record) -> None:
    """Add a step between this one and those that the rule leads to."""
    at = rule.at
    name = _free_name(f"{pipeline.name}_sink", record)
    record.note(by.SINK_STEP, at)
    given = {each: each for each in _PASSED_ON}
    tasks = [sink_task(item, record, {**given, "result": "args.result"}) for item in items_of(written)]
    read = [each for each in _PASSED_ON if any(reads_any(task, frozenset({each, "args"})) for task in tasks)]
    args = {each: template(ENVELOPE[each]) for each in read}
    items: list[Any] = [{f"sink_{number}" if number > 1 else "sink": task} for number, task in enumerate(tasks, 1)]
    targets = list(_targets(rule.then.get("next")))
    if not targets and rule.about.moment == "error":
        rules = [{"else": {"then": {"do": "fail"}}}]
        items.append({"failed": {"kind": "noop", "spec": {"policy": {"rules": rules}}}})
    added: dict[str, Any] = {"step": name, "tool": items}
    if "next" in rule.then:
        added["next"] = rule.then.pop("next").value
    made = value(added, at)
    assert isinstance(made, MapNode)
    record.add_step(made)
    rule.then.put("next", value([{"step": name} | ({"args": args} if args else {})], at), at)


def _free_name(wanted: str, record: Record) -> str:
    names = (wanted, *(f"{wanted}_{number}" for number in range(2, 1000)))
    taken = record.names | {plain_name(step.get("step")) or "" for step in record.added}
    return next(name for name in names if name not in taken)


def _lower_sets(rule: Rule, expression: str, step: Fields, pipeline: Pipeline, record: Record, *, loops: bool) -> None:
    sets = [rule.then.pop(name) for name in ("set", "vars", "set_ctx") if name in rule.then]
    if not sets:
        return
    record.note(by.CASE_SET, sets[0].key)
    if "next" in rule.then:
        for entry in sets:
            rule.then.put("set", entry.value, entry.key)
        return
    target, meant = step, ENVELOPE
    if loops and rule.about.moment != "loop":  # of each item
        target, meant = pipeline.main, RESULT
        expression = rule.about.rest
    always = not expression or (not rule.about.rest and rule.about.moment in ("ok", "loop"))
    for entry in sets:
        if not isinstance(entry.value, MapNode):
            raise NoEquivalentError(entry.value, "`set` is a map.", "Write `set: { <name>: … }`.")
        written = entry.value if always else _guarded(entry.value, expression)
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
    arcs = [_named(target) for target in _targets(following)]
    if not arcs:
        raise NoEquivalentError(key, "`next` names no step.", "Write `next: <step>`.")
    sets = rule.then.get("set")
    if sets is not None:
        if not isinstance(sets, MapNode):
            raise NoEquivalentError(sets, "`set` is a map.", "Write `set: { <name>: … }`.")
        first = Fields(arcs[0])
        add_sets(first, sets, record, ENVELOPE, key)
        arcs[0] = first.built()
    return Group(rule.when, arcs, rule.at)


def _targets(node: Node | None) -> Iterator[Node]:
    if isinstance(node, MapNode) and "arcs" in node:
        node = node.get("arcs")
    for item in items_of(node):
        if plain_name(item) is None and not (isinstance(item, MapNode) and "step" in item):
            raise NoEquivalentError(item, "`next` names no step.", "Write `next: [{ step: <name> }]`.")
        yield item


def _named(node: Node) -> MapNode:
    if isinstance(node, MapNode):
        return node
    return MapNode(node.start, node.end, (Entry(word("step", node), node),))


def has_older_arcs(node: Node | None, record: Record) -> bool:
    """Return whether arcs have a `then` or an `else`, or lead to all steps."""
    if _leads_to_all(node, record) and sum(map(_is_free, items_of(node))) > 1:
        return True
    arcs = node.get("arcs") if isinstance(node, MapNode) else node
    return isinstance(arcs, ListNode) and any(
        isinstance(item, MapNode) and ("then" in item or "else" in item) for item in arcs.items
    )


def _leads_to_all(node: Node | None, record: Record) -> bool:
    return record.api == "noetl.io/v1" and isinstance(node, ListNode)


def _is_free(arc: Node) -> bool:
    """Return whether an arc has no condition."""
    return isinstance(arc, MapNode) and "step" in arc and {"when", "then", "else"}.isdisjoint(arc.keys)


def lower_arcs(step: Fields, record: Record) -> None:
    """Write one arc for each step of a `then` or an `else`."""
    following = step.get("next")
    step.put("next", _router(list(_groups(following, record)), following, step.key("next")))


def _groups(node: Node | None, record: Record) -> Iterator[Group]:
    """Yield the arcs of a `next` in any form, those together that are taken together."""
    before: Group | None = None
    for group in _each_group(node, record):
        if before is not None and before.when is None and group.when is None and _leads_to_all(node, record):
            record.note(by.ALL_ARCS, group.at)
            before.arcs += group.arcs
            continue
        yield from () if before is None else (before,)
        before = group
    yield from () if before is None else (before,)


def _each_group(node: Node | None, record: Record) -> Iterator[Group]:
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return
    if isinstance(node, ListNode) and node.items and all(isinstance(item, Scalar) for item in node.items):
        yield Group(None, [_named(item) for item in node.items], node)
        return
    for item in items_of(node.get("arcs") if isinstance(node, MapNode) and "arcs" in node else node):
        if isinstance(item, MapNode) and ("then" in item or "else" in item):
            record.note(by.ARC_THEN, item)
            yield from _branches(item, is_inclusive=_mode(node) == "inclusive")
        elif isinstance(item, MapNode):
            arc = Fields(item)
            when = arc.pop("when").value if "when" in arc else None
            yield Group(when, [arc.built()], item)
        else:
            yield Group(None, [_named(item)], item)


def _branches(item: MapNode, *, is_inclusive: bool) -> Iterator[Group]:
    """Yield the arcs of a `then`, and those of an `else`, which is tried after it."""
    when = item.get("when")
    for name in ("then", "else"):
        if name not in item:
            continue
        arcs = [_named(target) for target in _targets(item.get(name))]
        if not arcs:
            raise NoEquivalentError(item, f"`{name}` names no step.", f"Write `{name}: [{{ step: <name> }}]`.")
        yield Group(when, arcs, item)
        if when is not None and is_inclusive:
            when = value(template(conjunction(_SUCCESS, negation([expression_of(when)]))), when)
        else:
            when = None


def _mode(node: Node | None) -> str | None:
    spec = node.get("spec") if isinstance(node, MapNode) else None
    return plain_name(spec.get("mode")) if isinstance(spec, MapNode) else None


def _router(groups: list[Group], before: Node | None, at: Node) -> MapNode:
    """Return the router of groups; inclusive where one leads to several steps."""
    spec = before.get("spec") if isinstance(before, MapNode) else None
    mode = _mode(before)
    several = any(len(group.arcs) > 1 for group in groups)
    arcs: list[Node] = []
    above: list[str] = []
    for group in groups:
        when: Any = group.when
        if several and above and mode != "inclusive":
            own = _SUCCESS if when is None else expression_of(when)
            when = value(template(conjunction(own, negation(above))), group.when or group.at)
        arcs += [_with_condition(arc, when) for arc in group.arcs]
        above.append(_SUCCESS if group.when is None else expression_of(group.when))
    settings = Fields(spec) if isinstance(spec, MapNode) else Fields(MapNode(at.start, at.end, ()))
    if several:
        settings.put("mode", value("inclusive", at), at)
    data: dict[str, Any] = {"spec": settings.built()} if settings.entries else {}
    made = value(data | {"arcs": ListNode(at.start, at.end, tuple(arcs))}, at)
    assert isinstance(made, MapNode)
    return made


def _with_condition(arc: MapNode, when: Node | None) -> MapNode:
    if when is None:
        return arc
    own = arc.get("when")
    if own is not None:
        when = value(template(conjunction(expression_of(when), expression_of(own))), own)
    fields = Fields(arc)
    made: dict[str, Entry] = {}
    for name, entry in fields.entries.items():
        if name != "when":
            made[name] = entry
        if name == "step":
            made["when"] = Entry(word("when", when), when)
    fields.reset(made)
    return fields.built()
