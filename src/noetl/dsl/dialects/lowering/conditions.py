"""Conditions and expressions as text: combine them, find their event.

Tested in tests/unit/dsl/dialects/test_conditions.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from noetl.dsl.dialects.lowering.draft import NoEquivalentError, rewritten
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.expr import TemplateError, compile_template
from noetl.model.events import CANONICAL

# When a condition may hold: at the start of a step, at its end, at the end of an item or of a whole loop.
Moment = Literal["start", "ok", "error", "item", "loop", "any", "never", "other"]

_WHOLE: Final = re.compile(r"\s*\{\{-?\s*(.*?)\s*-?\}\}\s*", re.DOTALL)
_PART: Final = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_TOKEN: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[(\[{]|[)\]}]|\b(?:and|or|if|not)\b|.""", re.DOTALL)
_EVENT: Final = re.compile(r"""event\.name\s*==\s*(['"])([\w.]+)\1|(['"])([\w.]+)\3\s*==\s*event\.name""")
_NOT_EVENT: Final = re.compile(r"""event\.name\s*!=\s*(['"])([\w.]+)\1|(['"])([\w.]+)\3\s*!=\s*event\.name""")
_EVENTS: Final = re.compile(r"event\.name\s+in\s*[\[(]([^\])]*)[\])]")
_QUOTED: Final = re.compile(r"""(['"])([\w.]+)\1""")
_SUCCEEDED: Final = re.compile(
    r"(?:response|result|this)\s+is\s+(?:defined|not\s+undefined)|error\s+is\s+(?:not\s+defined|undefined|none)|not\s+error"
    r"|outcome\.status\s*==\s*['\"]ok['\"]"
)
_FAILED: Final = re.compile(
    r"error\s+is\s+(?:defined|not\s+none|not\s+undefined)|error|(?:response|result)\s+is\s+(?:not\s+defined|undefined)"
    r"|outcome\.status\s*==\s*['\"]error['\"]"
)
_WEAK: Final = re.compile(r"\b(?:or|if|and|not)\b")
_OK: Final[frozenset[Moment]] = frozenset({"ok", "item", "loop"})
_ERROR: Final[frozenset[Moment]] = frozenset({"error"})
_MOMENTS: Final[dict[str, frozenset[Moment]]] = {
    "step.done": frozenset({"ok"}), "task.done": frozenset({"ok"}), "step.failed": _ERROR, "task.failed": _ERROR,
    "loop.done": frozenset({"loop"}), "loop.iteration.done": frozenset({"item"}),
    "step.scheduled": frozenset({"start"}), "step.started": frozenset({"start"}), "task.started": frozenset({"start"}),
}  # fmt: skip
_OF_STEPS: Final = {"task.done": "step.done", "task.failed": "step.failed"}
_OF_A_SINK: Final = frozenset({"sink.started"})  # the task that it is about is not the one of the step


class Condition(Struct, frozen=True):
    """A condition: its event, and what else it asks; `rest` is empty if nothing."""

    moment: Moment
    rest: str
    event: str = ""  # as written, if it is one that has no moment


def expression_of(node: Node | None) -> str:
    """Return a value as an expression: `{{ a }}` is `a`, other text a string.

    Raises NoEquivalentError for a text with statements.
    """
    if isinstance(node, MapNode):
        pairs = (f"{_literal(entry.key.text)}: {expression_of(entry.value)}" for entry in node.entries)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(node, ListNode):
        return "[" + ", ".join(map(expression_of, node.items)) + "]"
    if not isinstance(node, Scalar) or node.value is None:
        return "none"
    if not isinstance(node.value, str):
        return json.dumps(node.value)
    text = node.value
    alone = _alone(text)
    if alone is not None:
        return alone
    if "{%" in text or "{#" in text:
        raise NoEquivalentError(node, "A text with statements cannot be part of an expression.", "Use an expression.")
    parts: list[str] = []
    at = 0
    for match in _PART.finditer(text):
        if text[at : match.start()]:
            parts.append(_literal(text[at : match.start()]))
        parts.append(f"({match[1]})")
        at = match.end()
    if text[at:] or not parts:
        parts.append(_literal(text[at:]))
    return " ~ ".join(parts)


def _alone(text: str) -> str | None:
    """Return the expression of a text that is nothing but one."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    try:
        return match[1] if compile_template(text).kind == "expression" else None
    except TemplateError:
        return match[1]


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def is_template_condition(node: Node | None) -> bool:
    """Return whether a condition is a template, or true or false."""
    if not isinstance(node, Scalar):
        return False
    return isinstance(node.value, bool) or (isinstance(node.value, str) and _alone(node.value) is not None)


def negation(expressions: Iterable[str]) -> str:
    """Return that none of some expressions holds."""
    return "not (" + " or ".join(map(_in_brackets, expressions)) + ")"


def conjunction(*expressions: str) -> str:
    """Join expressions with `and`; empty ones are left out."""
    parts = [one for one in expressions if one]
    return parts[0] if len(parts) == 1 else " and ".join(map(_in_brackets, parts))


def _in_brackets(expression: str) -> str:
    """Return an expression in brackets, if an operator in it may be weak."""
    return f"({expression})" if _WEAK.search(expression) else expression


def template(expression: str) -> str:
    return "{{ " + expression + " }}"


def condition_of(expression: str) -> Condition:
    """Return what a condition is about; a conjunction can name the event it waits for."""
    moments: frozenset[Moment] | None = None
    rest: list[str] = []
    for part in _operands(expression, "and"):
        found, event = _moments(part)
        if event:
            return Condition("other", expression, event)
        if found is None:
            rest.append(part)
        else:
            moments = found if moments is None else moments & found
    return Condition("any" if moments is None else _one_of(moments), " and ".join(rest))


def _one_of(moments: frozenset[Moment]) -> Moment:
    if len(moments) < 2:
        return next(iter(moments), "never")
    if "start" in moments:
        return "other"
    return "any" if "error" in moments else "ok"


def _moments(part: str) -> tuple[frozenset[Moment] | None, str]:
    """Return when a part may hold (None: about no event), or an unknown event."""
    text = _without_brackets(part)
    alternatives = list(_operands(text, "or"))
    if len(alternatives) > 1:
        found = [_moments(one) for one in alternatives]
        if any(moments is None and not event for moments, event in found):
            return None, ""
        union = frozenset[Moment]().union(*(moments or () for moments, _ in found))
        return union, next((event for _, event in found if event), "")
    names = _named_events(text)
    if names is not None:
        known = [_moments_of(name) for name in names]
        unknown = next((name for name, moments in zip(names, known, strict=True) if moments is None), "")
        return frozenset[Moment]().union(*filter(None, known)), unknown
    other = _NOT_EVENT.fullmatch(text)
    if other is not None:
        moments = _moments_of(other[2] or other[4])
        return (_OK | _ERROR) - (moments or frozenset()), ""
    if _SUCCEEDED.fullmatch(text):
        return _OK, ""
    return (_ERROR, "") if _FAILED.fullmatch(text) else (None, "")


def _named_events(text: str) -> list[str] | None:
    """Return the events that a comparison names; None for anything else."""
    one = _EVENT.fullmatch(text)
    if one is not None:
        return [one[2] or one[4]]
    several = _EVENTS.fullmatch(text)
    return None if several is None else [match[2] for match in _QUOTED.finditer(several[1])]


def _moments_of(name: str) -> frozenset[Moment] | None:
    return None if name in _OF_A_SINK else _MOMENTS.get(CANONICAL.get(name, name))


def of_steps(node: Scalar) -> Scalar:
    """Return a condition about the step, which a router sees, instead of a task."""
    edits = []
    for match in _EVENT.finditer(node.text):
        group = 2 if match[2] else 4
        new = _OF_STEPS.get(CANONICAL.get(match[group], match[group]))
        edits += [(*match.span(group), new)] if new else []
    for match in _EVENTS.finditer(node.text):
        for name in _QUOTED.finditer(node.text, *match.span(1)):
            new = _OF_STEPS.get(CANONICAL.get(name[2], name[2]))
            edits += [(*name.span(2), new)] if new else []
    return rewritten(node, edits) if edits else node


def _without_brackets(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for match in _TOKEN.finditer(text):
        depth += (match[0] in "([{") - (match[0] in ")]}") if len(match[0]) == 1 else 0
        if not depth:
            return match.end() == len(text)
    return False


def _operands(expression: str, operator: Literal["and", "or"]) -> Iterator[str]:
    """Yield the operands of the outermost `and` or `or`, or the whole."""
    text = _without_brackets(expression)
    stops = ("or", "if") if operator == "and" else ("if",)
    depth, cuts = 0, []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if len(token) == 1:
            depth += (token in "([{") - (token in ")]}")
        elif not depth and token in stops:
            yield text
            return
        elif not depth and token == operator:
            cuts.append((match.start(), match.end()))
    at = 0
    for start, end in cuts:
        yield text[at:start].strip()
        at = end
    yield text[at:].strip()
