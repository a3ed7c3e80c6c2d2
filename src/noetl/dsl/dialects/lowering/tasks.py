"""Tasks: `type`, `action`, `with`, `eval`, `vars`, bound `args`.

Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from noetl.dsl.dialects.lowering import lowerings as by
from noetl.dsl.dialects.lowering.draft import (
    Fields,
    NoEquivalentError,
    Record,
    items_of,
    plain_name,
    value,
    word,
)
from noetl.dsl.dialects.lowering.names import OF_RULE, RESULT, may_rename, reads_any, renamed
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar

OLDER: Final = frozenset({"type", "action", "with", "call", "eval", "expr", "vars"})
_BIND: Final = re.compile(r"%\((\w+)\)s")
_BODIES: Final = ("params", "body", "json", "data", "form", "payload")
_SQL: Final = ("command", "query", "commands")
_KINDS_WITH_BINDS: Final = frozenset({"postgres", "snowflake"})
_KINDS_WITHOUT_DATA: Final = frozenset({"python", "workbook", "playbook"})
_ACTIONS: Final = ("do", "attempts", "delay", "backoff", "max_delay", "jitter", "to", "set", "set_ctx", "set_iter")


def lower_task(node: MapNode, record: Record) -> MapNode:
    """Return a task in canonical form, apart from what it does beyond its own call."""
    if not is_older(node):
        return node
    task = Fields(node)
    for name in ("type", "tool", "action"):
        if name in task and "kind" not in task and plain_name(task.get(name)) is not None:
            record.note(by.TYPED_TASK, task.key(name))
            task.rename(name, "kind")
    if "call" in task and "kind" not in task:
        lower_call(task, record)
    for name in ("with", "data"):
        if name in task and "input" not in task and "args" not in task and (name == "with" or gives_data(task.built())):
            record.note(by.WITH, task.key(name))
            task.rename(name, "input")
    _lower_target_mode(task, record)
    if "eval" in task or ("expr" in task and "eval" not in task and "spec" not in task):
        _lower_eval(task, record)
    if "vars" in task:
        _lower_vars(task, record)
    _lower_rules(task, record)
    _bind_args(task, record)
    _send_args(task, record)
    return task.built()


def is_older(node: MapNode) -> bool:
    """Return whether a task may have an older form; a look at its keys."""
    return (
        not OLDER.isdisjoint(node.keys)
        or plain_name(node.get("tool")) is not None
        or _target_with_mode(node) is not None
        or sends_args(node)
        or gives_data(node)
        or any(map(_is_older_rule, _rule_maps(node)))
    )


def _target_with_mode(node: MapNode) -> MapNode | None:
    """Return the target of a transfer, if it says how rows are written."""
    target = node.get("target")
    if plain_name(node.get("kind")) != "transfer" or "mode" in node or not isinstance(target, MapNode):
        return None
    return target if "mode" in target else None


def _lower_target_mode(task: Fields, record: Record) -> None:
    written = _target_with_mode(task.built())
    if written is not None:
        target = Fields(written)
        mode = target.pop("mode")
        record.note(by.TARGET_MODE, mode.key)
        task.put("target", target.built())
        task.add(mode)


def _rule_maps(node: MapNode) -> Iterator[MapNode]:
    spec = node.get("spec")
    policy = spec.get("policy") if isinstance(spec, MapNode) else None
    rules = policy.get("rules") if isinstance(policy, MapNode) else None
    for rule in rules.items if isinstance(rules, ListNode) else ():
        if isinstance(rule, MapNode):
            yield rule


def _lower_rules(task: Fields, record: Record) -> None:
    """Rename the conditions of a policy, and the names that they read."""
    if not any(_is_older_rule(rule) for rule in _rule_maps(task.built())):
        return
    spec = task.below("spec", task.node)
    policy = spec.below("policy", task.node)
    made: list[Node] = []
    for rule in rules_of(task):
        if isinstance(rule, MapNode) and "expr" in rule and "when" not in rule:
            fields = Fields(rule)
            record.note(by.EVAL, fields.key("expr"))
            fields.rename("expr", "when")
            made.append(renamed(fields.built(), OF_RULE, record, by.NAMES))
        else:
            made.append(renamed(rule, OF_RULE, record, by.NAMES))
    if all(new is old for new, old in zip(made, rules_of(task), strict=True)):
        return
    policy.put("rules", ListNode(made[0].start, made[-1].end, tuple(made)))
    spec.put("policy", policy.built())
    task.put("spec", spec.built())


def gives_data(node: MapNode) -> bool:
    """Return whether `data` of a task is its inputs: its kind has no `data`."""
    return (
        plain_name(node.get("kind")) in _KINDS_WITHOUT_DATA
        and isinstance(node.get("data"), MapNode)
        and "input" not in node
        and "args" not in node
    )


def _is_older_rule(rule: MapNode) -> bool:
    return "expr" in rule or any(may_rename(entry.value) for entry in rule.entries)


def lower_call(fields: Fields, record: Record) -> None:
    """Turn `call: {type: workbook, name: t}` or `call: t` into fields of a task."""
    key, called = fields.pop("call")
    record.note(by.CALL, key)
    name = plain_name(called)
    if name is not None:
        fields.put("kind", value("workbook", key), key)
        fields.put("task", called, called)
        return
    if not isinstance(called, MapNode):
        raise NoEquivalentError(key, "`call` names no task.", "Write `call: <task of the workbook>`.")
    inner = Fields(called)
    for old in ("type", "kind"):
        if old in inner:
            fields.put("kind", inner.pop(old).value, key)
            break
    else:
        fields.put("kind", value("workbook", key), key)
    if plain_name(fields.get("kind")) == "workbook" and "task" not in inner and "name" in inner:
        inner.rename("name", "task")
    if "with" in inner and "input" not in inner:
        inner.rename("with", "input")
    for name, entry in inner.entries.items():
        fields.put(name, entry.value, entry.key)


def _lower_eval(task: Fields, record: Record) -> None:
    name = "eval" if "eval" in task else "expr"
    key, written = task.pop(name)
    record.note(by.EVAL, key)
    if name == "expr":
        written = MapNode(key.start, key.end, (Entry(key, written), *(e for e in _actions_of(task))))
    rules: list[Node] = []
    for item in items_of(written):
        if not isinstance(item, MapNode):
            raise NoEquivalentError(item, "A rule of `eval` is a map.", 'Write `- expr: "{{ … }}"` with `do: …`.')
        rules.append(_rule(item))
    add_rules(task, rules, key)


def _actions_of(task: Fields) -> list[Entry]:
    return [task.pop(name) for name in _ACTIONS if name in task and name not in ("set", "set_ctx", "set_iter")]


def _rule(node: MapNode) -> Node:
    """Return a rule of a policy: its actions are under `then`."""
    rule = Fields(node)
    if "else" in rule:
        body = rule.get("else")
        if isinstance(body, MapNode) and "then" not in body:
            rule.put("else", MapNode(body.start, body.end, (Entry(word("then", body), body),), body.flow))
        return rule.built()
    if "expr" in rule:
        rule.rename("expr", "when")
    actions = [rule.pop(name) for name in _ACTIONS if name in rule]
    if actions and "then" not in rule:
        rule.put("then", MapNode(actions[0].key.start, actions[-1].value.end, tuple(actions)), actions[0].key)
    return rule.built()


def rules_of(task: Fields) -> list[Node]:
    """Return the rules that a task has."""
    spec = task.get("spec")
    policy = spec.get("policy") if isinstance(spec, MapNode) else None
    rules = policy.get("rules") if isinstance(policy, MapNode) else None
    return list(rules.items) if isinstance(rules, ListNode) else []


def add_rules(task: Fields, rules: list[Node], at: Node) -> None:
    """Put rules before those that a task has."""
    spec = task.below("spec", at)
    policy = spec.below("policy", at)
    policy.put("rules", ListNode(at.start, at.end, (*rules, *rules_of(task))), at)
    spec.put("policy", policy.built(), at)
    task.put("spec", spec.built(), at)


def put_spec(task: Fields, name: str, data: object, at: Node) -> None:
    """Set one field of a task's `spec`."""
    spec = task.below("spec", at)
    spec.put(name, value(data, at), at)
    task.put("spec", spec.built(), at)


def _lower_vars(task: Fields, record: Record) -> None:
    key, written = task.pop("vars")
    if not isinstance(written, MapNode):
        raise NoEquivalentError(key, "`vars` is a map of names and values.", "Write `vars: { <name>: … }`.")
    record.note(by.VARS, key)
    add_sets(task, written, record, RESULT, key)


def add_sets(fields: Fields, written: MapNode, record: Record, meant: dict[str, str], at: Node) -> None:
    """Add writes to `ctx` to the `set` of a step, a task, an arc or a rule."""
    sets = fields.below("set", at)
    for entry in written.entries:
        name = entry.key.text
        scoped = name.partition(".")[0] in ("ctx", "iter", "step") and "." in name
        target = entry.key if scoped else word(f"ctx.{name.removeprefix('vars.')}", entry.key)
        sets.put(target.text, renamed(entry.value, meant, record, by.NAMES), target)
    fields.put("set", sets.built(), at)


def has_binds(node: MapNode) -> bool:
    """Return whether SQL of a task names bound values, and none are given as `params`."""
    if "params" in node or not ("args" in node or "input" in node):
        return False
    spec = node.get("spec")
    holders = (node, spec) if isinstance(spec, MapNode) else (node,)
    if plain_name(node.get("kind")) not in _KINDS_WITH_BINDS:
        return False
    return any(isinstance(text := one.get(name), Scalar) and "%(" in text.text for one in holders for name in _SQL)


def _bind_args(task: Fields, record: Record) -> None:
    node = task.built()
    if not has_binds(node):
        return
    spec = node.get("spec")
    holders = (node, spec) if isinstance(spec, MapNode) else (node,)
    texts = [text.text for one in holders for name in _SQL if isinstance(text := one.get(name), Scalar)]
    bound = {name for text in texts for name in _BIND.findall(text)}
    field = "args" if "args" in task else "input"
    key, given = task.entries[field]
    if not isinstance(given, MapNode) or bound.isdisjoint(given.keys):
        return
    record.note(by.BINDS, key)
    params = tuple(entry for entry in given.entries if entry.key.text in bound)
    rest = tuple(entry for entry in given.entries if entry.key.text not in bound)
    if rest:
        task.put(field, MapNode(given.start, given.end, rest, given.flow))
        task.put("params", MapNode(given.start, given.end, params, given.flow), key)
    else:
        task.rename(field, "params")


def sends_args(node: MapNode) -> bool:
    """Return whether the `args` of a task are values for SQL or for a request."""
    return has_binds(node) or has_http_args(node)


def has_http_args(node: MapNode) -> bool:
    """Return whether the `args` of a request are meant to be sent."""
    args = node.get("args")
    if not isinstance(args, MapNode) or not args.entries or plain_name(node.get("kind")) != "http":
        return False
    spec = node.get("spec")
    holders = (node, spec) if isinstance(spec, MapNode) else (node,)
    if any(name in one for one in holders for name in _BODIES):
        return False
    rest = MapNode(node.start, node.end, tuple(entry for entry in node.entries if entry.key.text != "args"))
    return not reads_any(rest, frozenset({"args", "input"}))


def _send_args(task: Fields, record: Record) -> None:
    node = task.built()
    if record.is_canonical or not has_http_args(node):
        return
    spec = node.get("spec")
    holders = (node, spec) if isinstance(spec, MapNode) else (node,)
    method = next((name for one in holders if (name := plain_name(one.get("method")))), "GET")
    record.note(by.HTTP_ARGS, task.key("args"))
    task.rename("args", "json" if method.upper() in ("POST", "PUT", "PATCH") else "params")


def policy_fails_else_continues() -> list[dict[str, object]]:
    """Return the last rules of a policy that fails on an error."""
    return [
        {"when": "{{ outcome.status == 'error' }}", "then": {"do": "fail"}},
        {"else": {"then": {"do": "continue"}}},
    ]
