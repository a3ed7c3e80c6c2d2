"""`retry`: calls again after an error, polls, and fetches page after page.

Tested in tests/unit/dsl/dialects/test_lowering.py and tests/dialects/test_dialects.py.
"""

from __future__ import annotations

import re
from typing import Any, Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.conditions import (
    condition_of,
    conjunction,
    expression_of,
    is_template_condition,
    negation,
    template,
)
from noetl.dsl.dialects.lowering.draft import (
    Fields,
    NoEquivalentError,
    Record,
    is_null,
    items_of,
    plain_name,
    value,
    word,
)
from noetl.dsl.dialects.lowering.names import OF_RULE, RESULT, reads_any, renamed
from noetl.dsl.dialects.lowering.pipelines import Pipeline, sink_task
from noetl.dsl.dialects.lowering.tasks import add_rules, policy_fails_else_continues, put_spec, rules_of
from noetl.dsl.reading.nodes import MapNode, Node, Scalar

_ATTEMPTS: Final = ("max_attempts", "attempts", "max_retries", "times")
_DELAY: Final = ("initial_delay", "delay", "delay_seconds", "delay_s", "retry_delay", "interval")
_STRATEGIES: Final = {
    "append": "concat", "extend": "concat", "concat": "concat", "replace": "replace", "last": "replace", "merge": "merge",
}  # fmt: skip
_PARTS: Final = {"params": "params", "query": "params", "headers": "headers", "args": "input", "input": "input",
                 "json": "json", "body": "json", "data": "data"}  # fmt: skip
_CALL_AGAIN: Final = frozenset({*_PARTS, "url", "endpoint"})
_PATH: Final = re.compile(r"(?:\w+(?:\.\w+)*)?")
_RESULTS: Final = frozenset({"response", "result", "this"})
_OF_A_RETRY: Final = frozenset({*_ATTEMPTS, *_DELAY, "backoff", "backoff_multiplier", "max_delay", "jitter"})
_OF_A_PAGE: Final = frozenset({*_OF_A_RETRY, "next_call", "collect", "per_iteration"})
_FAILED: Final = "{{ outcome.status == 'error' }}"


def lower_retry(pipeline: Pipeline, written: Node, record: Record, key: Scalar) -> None:
    """Turn `retry` into rules of a policy, and a task that asks for the next page."""
    rules: list[tuple[Node | None, MapNode]] = []
    pages: list[tuple[Node | None, MapNode]] = []
    for item in items_of(_as_rules(written)):
        when, settings = _parts(item)
        (pages if "next_call" in settings else rules).append((when, settings))
    if len(pages) > 1:
        raise NoEquivalentError(pages[1][1], "Two rules say how the next page is called.", "Keep one `next_call`.")
    pipeline.require_result()
    if rules:
        record.note(by.RETRY, key)
        for task in pipeline.working:
            _repeat(task, [rule for rule in rules if _is_about(rule[0], task, pipeline)], record, key)
    if pages:
        if len(pipeline.tasks) > 1:  # those that only write too: they would write only once
            reason = "`next_call` of a step with several tasks does not say which of them asks for the next page."
            raise NoEquivalentError(key, reason, "Write `retry` on that task.")
        record.note(by.PAGES, key)
        [(when, fields)] = pages
        _lower_pages(pipeline, when, fields, record, key)


def _parts(item: Node) -> tuple[Node | None, MapNode]:
    """Return the condition of a rule and its settings."""
    if not isinstance(item, MapNode):
        raise NoEquivalentError(
            item, "A rule of `retry` is a map.", "Write `- when: …` with `then: { max_attempts: … }`."
        )
    then = item.get("then")
    own = Fields(item)
    when = own.pop("when").value if "when" in own else None
    settings = Fields(then if isinstance(then, MapNode) else MapNode(item.start, item.end, ()))
    if isinstance(then, MapNode):
        own.pop("then")
    for name, entry in own.entries.items():
        if name in settings:
            raise NoEquivalentError(entry.key, f"`{name}` stands beside `then` and in it.", "Keep one of them.")
        settings.add(entry)
    known = _OF_A_PAGE if "next_call" in settings else _OF_A_RETRY
    for name, entry in settings.entries.items():
        if name not in known:
            raise _unknown(entry.key)
    return when, settings.built()


def _unknown(key: Scalar) -> NoEquivalentError:
    name = key.text
    if name in _OF_A_PAGE:
        reason = f"`{name}` of a rule of `retry` has no effect without `next_call`."
        return NoEquivalentError(key, reason, "Write `next_call`, or remove it.")
    fix = "A rule has `when`, and under `then` such as `max_attempts`, `delay` or `next_call`."
    return NoEquivalentError(key, f"`{name}` is no part of a rule of `retry`.", fix, name, _OF_A_PAGE)


def _is_about(when: Node | None, task: Fields, pipeline: Pipeline) -> bool:
    """Return whether a rule of the step repeats a task.

    A rule about a result repeats only the task that gives it.
    """
    if task is pipeline.main or when is None or not reads_any(when, _RESULTS):
        return True
    if reads_any(when, frozenset({"error"})):
        fix = "Write two rules: one for `error`, and one for `response`. Or write `retry` on the task."
        reason = "The condition is about an error of any task, and about the result of the last one."
        raise NoEquivalentError(when, reason, fix)
    return condition_of(expression_of(when)).moment == "error"


def _repeat(task: Fields, rules: list[tuple[Node | None, MapNode]], record: Record, key: Scalar) -> None:
    if not rules:
        return
    last = [] if rules_of(task) else [value(one, key) for one in policy_fails_else_continues()]
    add_rules(task, [*(_repeats(when, fields, record) for when, fields in rules), *last], key)


def _as_rules(written: Node) -> Node:
    """Return the rules of the short forms: a number, or one map of settings."""
    if isinstance(written, Scalar):
        attempts = written.value
        if isinstance(attempts, bool):
            return value([{}] if attempts else [], written)
        return value([{"max_attempts": written}], written)
    if not isinstance(written, MapNode):
        return written
    by_outcome = [written.get(name) for name in ("on_error", "on_success")]
    if any(by_outcome):
        return value([_with_when(one) for one in by_outcome if isinstance(one, MapNode)], written)
    return value([_with_when(written)], written)


def _with_when(node: MapNode) -> MapNode:
    fields = Fields(node)
    for old in ("retry_when", "while"):
        if old in fields and "when" not in fields:
            fields.rename(old, "when")
    for old in ("until", "stop_when"):
        if old in fields:
            key, until = fields.pop(old)
            own = expression_of(fields.get("when")) if "when" in fields else ""
            fields.put("when", value(template(conjunction(own, negation([expression_of(until)]))), until), key)
    return fields.built()


def _repeats(when: Node | None, fields: MapNode, record: Record) -> Node:
    """Return the rule of a policy that calls again."""
    at = when or fields
    then: dict[str, Any] = {"do": "retry", "attempts": _first(fields, _ATTEMPTS) or 3}
    then |= _waits(_first(fields, _DELAY), fields.get("backoff"), fields.get("backoff_multiplier"))
    for name in ("max_delay", "jitter"):
        if not is_null(fields.get(name)):
            then[name] = fields.get(name)
    condition = value(_FAILED, at) if when is None else renamed(when, OF_RULE, record, by.NAMES)
    return value({"when": condition, "then": then}, at)


def _waits(delay: Node | None, backoff: Node | None, factor: Node | None) -> dict[str, Any]:
    """Return how long a retry waits; a factor other than 2 is part of the delay."""
    made: dict[str, Any] = {} if delay is None else {"delay": delay}
    factor = factor if not is_null(factor) else backoff
    if not isinstance(factor, Scalar) or is_null(factor):
        return made
    if isinstance(factor.value, bool):
        return made | ({"backoff": "exponential"} if factor.value else {})
    if not isinstance(factor.value, int | float):
        return made | ({"backoff": factor} if factor is backoff else _growing(delay, factor))
    if factor.value == 1:
        return made
    return made | ({"backoff": "exponential"} if factor.value == 2 else _growing(delay, factor))


def _growing(delay: Node | None, factor: Scalar) -> dict[str, Any]:
    first = "1" if delay is None else expression_of(delay)
    return {"delay": value(template(f"({first}) * ({expression_of(factor)}) ** (_attempt - 1)"), factor)}


def _first(fields: MapNode, names: tuple[str, ...]) -> Node | None:
    return next((found for name in names if not is_null(found := fields.get(name))), None)


def _lower_pages(pipeline: Pipeline, when: Node | None, fields: MapNode, record: Record, key: Scalar) -> None:
    if not is_template_condition(when):
        raise NoEquivalentError(
            when or key, "Pages need a condition: `when` is a template.", 'Write `when: "{{ … }}"`.'
        )
    main, at = pipeline.main, fields
    sets: dict[str, Any] = {"step.calls": template("(step.calls | default(0)) + 1")}
    condition = condition_of(expression_of(renamed(when, RESULT, record, by.NAMES) if when else None))
    asks = condition.rest or "true"
    sets["step.more"] = template(f"({asks}) | default(false)")
    _call_again(main, fields.get("next_call"), sets, record)
    collects = _collect(pipeline, fields.get("collect"))
    sinks = _page_sinks(fields)
    if sinks and collects:
        sets["step.page"] = template("output")
    own = main.below("set", at)
    for name, data in sets.items():
        own.put(name, value(data, at), at)
    main.put("set", own.built(), at)
    meant = dict.fromkeys(("response", "result", "this"), "step.page" if collects else "_prev")
    for sink in sinks:
        pipeline.append(pipeline.label("sink"), sink_task(sink, record, meant), sink)
    most = _first(fields, _ATTEMPTS)
    bound = "" if most is None else f"step.calls < {expression_of(most)}"
    rules: list[Any] = [
        {"when": template(conjunction("step.more", bound)), "then": {"do": "jump", "to": pipeline.main_label}},
        {"else": {"then": {"do": "continue"}}},
    ]
    following = value({"kind": "noop", "spec": {"policy": {"rules": rules}}}, at)
    assert isinstance(following, MapNode)
    pipeline.append(pipeline.label("next_call"), following, key)


def _call_again(main: Fields, call: Node | None, sets: dict[str, Any], record: Record) -> None:
    """Use the values of `next_call` from the second call on."""
    if not isinstance(call, MapNode) or not call.entries:
        raise NoEquivalentError(
            call or main.node, "`next_call` says nothing that changes.", "Write `next_call: { params: { … } }`."
        )
    for entry in call.entries:
        if entry.key.text not in _CALL_AGAIN:
            raise NoEquivalentError(
                entry.key,
                f"`next_call.{entry.key.text}` is not known.",
                "Change `url`, `params`, `headers`, `json` or `args`.",
            )
        if entry.key.text in ("url", "endpoint"):
            target = "url" if "url" in main or "endpoint" not in main else "endpoint"
            main.put(target, _either("next_url", main.get(target), entry.value, sets, record), entry.key)
            continue
        target = _target(main, entry.key.text)
        if not isinstance(entry.value, MapNode):
            main.put(target, _either(f"next_{target}", main.get(target), entry.value, sets, record), entry.key)
            continue
        part = main.below(target, entry.key)
        for name, following in entry.value.entries:
            part.put(name.text, _either(f"next_{name.text}", part.get(name.text), following, sets, record), name)
        main.put(target, part.built(), entry.key)


def _target(main: Fields, name: str) -> str:
    if name in ("args", "input"):
        return "args" if "args" in main and "input" not in main else "input"
    if name in ("json", "body", "data"):
        return next((field for field in ("json", "body", "data") if field in main), _PARTS[name])
    return _PARTS[name]


def _either(name: str, first: Node | None, following: Node, sets: dict[str, Any], record: Record) -> Node:
    """Return the value of the first call, or what was kept for the next one."""
    name = "".join(letter if letter.isalnum() else "_" for letter in name)
    if f"step.{name}" in sets:
        raise NoEquivalentError(following, "Two parts of `next_call` have the same name.", "Change one of them.")
    sets[f"step.{name}"] = template(f"({expression_of(renamed(following, RESULT, record, by.NAMES))}) | default(none)")
    before = expression_of(first)
    return value(template(f"step.{name} | default({before})"), following)


def _collect(pipeline: Pipeline, node: Node | None) -> bool:
    """Combine the pages; without `collect` the last one is the result."""
    if is_null(node) or node is None:
        return False
    if not isinstance(node, MapNode):
        raise NoEquivalentError(node, "`collect` is a map.", "Write `collect: { strategy: append, path: … }`.")
    _require(node, "collect", ("strategy", "mode", "path", "from", "into"))
    strategy = plain_name(node.get("strategy") or node.get("mode")) or "append"
    path, into = node.get("path") or _path_from(node.get("from")), node.get("into")
    if strategy not in _STRATEGIES:
        raise NoEquivalentError(
            node, f"The strategy `{strategy}` is not known.", "Use append, extend, replace or merge."
        )
    how: dict[str, Any] = {"strategy": _STRATEGIES[strategy] if plain_name(path) or strategy != "append" else "append"}
    if isinstance(path, Scalar) and plain_name(path):
        how["merge_path"] = path
    put_spec(pipeline.main, "result", how, node)
    if isinstance(into, Scalar) and plain_name(into):
        sets = pipeline.step.below("set", into)
        name = into.text.removeprefix("vars.").removeprefix("ctx.")
        sets.put(f"ctx.{name}", value("{{ outcome.result }}", into), into)
        pipeline.step.put("set", sets.built(), into)
    return True


def _require(node: MapNode, name: str, known: tuple[str, ...]) -> None:
    """Raise NoEquivalentError for a key that a map does not have."""
    for entry in node.entries:
        if (given := entry.key.text) not in known:
            listed = ", ".join(f"`{one}`" for one in known)
            raise NoEquivalentError(
                entry.key, f"`{given}` is no part of `{name}`.", f"`{name}` has {listed}.", given, known
            )


def _path_from(source: Node | None) -> Node | None:
    """Return the path that `from: response.data.rows` names in a result."""
    if source is None:
        return None
    written = expression_of(source).strip("'") if isinstance(source, Scalar) else ""
    root, _, path = written.partition(".")
    if root not in ("response", "result", "this", "output") or not _PATH.fullmatch(path):
        raise NoEquivalentError(source, "`from` is no path in the response.", "Write `path: data.rows`.")
    return word(path, source)


def _page_sinks(fields: MapNode) -> list[Node]:
    per = fields.get("per_iteration")
    if is_null(per) or per is None:
        return []
    if isinstance(per, MapNode):
        _require(per, "per_iteration", ("sink",))
    sink = per.get("sink") if isinstance(per, MapNode) else None
    if sink is None:
        raise NoEquivalentError(
            per, "`per_iteration` without a `sink` does nothing.", "Write `per_iteration: { sink: … }`."
        )
    return list(items_of(sink))
