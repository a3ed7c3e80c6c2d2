"""Conditions and expressions as text: combine them, find their event.

Tested in tests/unit/dsl/dialects/test_conditions.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from noetl.dsl.dialects.lowering.draft import NoEquivalentError
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.expr import TemplateError, compile_template
from noetl.model.events import CANONICAL

Moment = Literal["ok", "error", "loop", "any", "other"]

_WHOLE: Final = re.compile(r"\s*\{\{-?\s*(.*?)\s*-?\}\}\s*", re.DOTALL)
_PART: Final = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_TOKEN: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[(\[{]|[)\]}]|\b(?:and|or|if|not)\b|.""", re.DOTALL)
_EVENT: Final = re.compile(r"""event\.name\s*==\s*(['"])([\w.]+)\1|(['"])([\w.]+)\3\s*==\s*event\.name""")
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
_MOMENTS: Final[dict[str, Moment]] = {
    "step.done": "ok", "task.done": "ok", "step.failed": "error", "task.failed": "error", "loop.done": "loop",
}  # fmt: skip


class Condition(Struct, frozen=True):
    """A condition: its event, and what else it asks; `rest` is empty if nothing."""

    moment: Moment
    rest: str


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
    moments: set[Moment] = set()
    rest: list[str] = []
    for part in _conjuncts(expression):
        found = _moment(part)
        if found is None:
            rest.append(part)
        else:
            moments |= found
    moment: Moment = "any"
    if len(moments) == 1:
        moment = next(iter(moments))
    elif moments == {"ok", "loop"}:
        moment = "loop" if "loop" in moments else "ok"
    elif moments:
        moment = "other"
    return Condition(moment, " and ".join(rest))


def _moment(part: str) -> set[Moment] | None:
    text = _without_brackets(part)
    one = _EVENT.fullmatch(text)
    if one is not None:
        return {_moment_of(one[2] or one[4])}
    several = _EVENTS.fullmatch(text)
    if several is not None:
        moments = {_moment_of(match[2]) for match in _QUOTED.finditer(several[1])}
        return moments if len(moments) == 1 else {"any"} if moments == {"ok", "error"} else {"other"}
    if _SUCCEEDED.fullmatch(text):
        return {"ok"}
    return {"error"} if _FAILED.fullmatch(text) else None


def _moment_of(name: str) -> Moment:
    return _MOMENTS.get(CANONICAL.get(name, name), "other")


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


def _conjuncts(expression: str) -> Iterator[str]:
    """Yield the operands of the outermost `and`, or the whole."""
    text = _without_brackets(expression)
    depth, cuts = 0, []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if len(token) == 1:
            depth += (token in "([{") - (token in ")]}")
        elif not depth and token in ("or", "if"):
            yield text
            return
        elif not depth and token == "and":
            cuts.append((match.start(), match.end()))
    at = 0
    for start, end in cuts:
        yield text[at:start].strip()
        at = end
    yield text[at:].strip()
