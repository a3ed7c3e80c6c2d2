"""Rules of `case`: conditions, events and actions, and what is no part of one.

Tested in tests/unit/dsl/dialects/test_lowering.py and tests/dialects/test_dialects.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from noetl.dsl.dialects.lowering.conditions import Condition, condition_of, expression_of, is_template_condition
from noetl.dsl.dialects.lowering.draft import Fields, NoEquivalentError, items_of
from noetl.dsl.reading.nodes import Entry, MapNode, Node, Scalar
from noetl.model.events import CANONICAL, EVENT_TYPES

_WRITES: Final = ("sink", "save", "set", "vars", "set_ctx")
_KNOWN: Final = frozenset({"next", "retry", "call", "collect", *_WRITES})
_OF_A_RULE: Final = frozenset({"when", "then", "else", "desc", "description"})
_CONTROL: Final = frozenset({"fail", "skip", "break", "jump", "continue", "do"})
_ELSEWHERE: Final = {
    "playbook.finished": "Write the step that runs at the end, and name it in `executor.spec.final_step`.",
    "task.attempt.started": "Write it in a rule of the task's `spec.policy`, beside `do: retry`.",
    "task.attempt.failed": "Write it in a rule of the task's `spec.policy`, beside `do: retry`.",
    "loop.started": "Write it on the step before the loop.",
    "loop.iteration.started": "Write it in a task before the one that does the work.",
    "loop.iteration.failed": "Write it in a rule of the task's `spec.policy`, beside `do: fail`.",
    "task.started": "Write it in a task before the one that writes.",
}


class Rule(Struct):
    """One rule of `case`."""

    when: Node | None
    about: Condition
    then: Fields
    at: Node


def rules_of_case(written: Node) -> Iterator[Rule]:
    for item in items_of(written):
        if not isinstance(item, MapNode):
            raise NoEquivalentError(item, "A rule of `case` is a map.", "Write `- when: …` with `then: { next: … }`.")
        when, body = item.get("when"), item.get("then")
        _require_known(item)
        if "else" in item:
            other = item.get("else")
            body = body or (other.get("then") if isinstance(other, MapNode) and "then" in other else other)
        elif when is None:
            raise NoEquivalentError(item, "A rule of `case` has no `when`.", 'Write `when: "{{ … }}"` or `else`.')
        then = Fields(_merged(body, item))
        _require_actions(then)
        yield Rule(when, _about(when), then, item)


def _require_known(rule: MapNode) -> None:
    for entry in rule.entries:
        if entry.key.text not in _OF_A_RULE:
            raise _beside(entry.key)


def _beside(key: Scalar) -> NoEquivalentError:
    """Return why a key is not understood beside `when`, and where it belongs."""
    name = key.text
    if name in _KNOWN:
        reason = f"`{name}` stands beside `when` in a rule of `case`."
        return NoEquivalentError(key, reason, f"Write it under `then`: `then: {{ {name}: … }}`.")
    reason = f"`{name}` is no part of a rule of `case`."
    return NoEquivalentError(key, reason, "A rule has `when` and `then`.", name, _OF_A_RULE)


def _require_actions(then: Fields) -> None:
    for name, entry in then.entries.items():
        if name in _KNOWN:
            continue
        if name in _CONTROL:
            fix = "Write a rule of the task's `spec.policy`: `- when: …` with `then: { do: fail }`, or another action."
            raise NoEquivalentError(entry.key, f"`{name}` of a rule of `case` controls the task.", fix)
        raise NoEquivalentError(
            entry.key,
            f"`{name}` is no action of a rule of `case`.",
            "Write `next`, `sink`, `set`, `retry` or `call`.",
            name,
            _KNOWN,
        )


def _merged(body: Node | None, rule: MapNode) -> MapNode:
    """Return the actions of a rule: one map, or a list of maps."""
    if isinstance(body, MapNode) and body.entries:
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
    found = condition_of(expression_or_nothing(when))
    if found.moment == "never":
        raise NoEquivalentError(when, "The condition asks for two events at once.", "Write a rule for each.")
    if found.moment == "other":
        raise _without_moment(when, found.event)
    return found


def _without_moment(when: Node, event: str) -> NoEquivalentError:
    """Return why nothing follows from an event, and what does the same."""
    if not event:
        reason = "The condition holds at the start of the step and at its end, and says nothing of the difference."
        return NoEquivalentError(when, reason, "Write a rule for each of the two events.")
    fix = _ELSEWHERE.get(CANONICAL.get(event, event), "Compare `event.name` with step.done, step.failed or loop.done.")
    if CANONICAL.get(event, event) not in EVENT_TYPES:
        return NoEquivalentError(when, f"`{event}` is no event.", fix, event, (*EVENT_TYPES, *CANONICAL))
    return NoEquivalentError(when, f"Nothing is routed or written on `{event}`.", fix)


def require_a_route(rule: Rule, *, loops: bool) -> None:
    if rule.about.moment == "item" and "next" in rule.then:
        fix = "Compare `event.name` with loop.done, or write what follows an item as a further task of the step."
        raise NoEquivalentError(rule.then.key("next"), "A loop is routed when it ends, not after each item.", fix)
    if rule.about.moment == "item" and not loops:
        fix = "Compare `event.name` with step.done."
        raise NoEquivalentError(rule.when or rule.at, "The step has no loop, so no item of it ends.", fix)


def expression_or_nothing(when: Node | None) -> str:
    return "" if when is None else expression_of(when)
