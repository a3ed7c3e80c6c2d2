"""Filters with regular expressions, which run on RE2. Tested in tests/unit/expr/test_regex.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.budget import Context
from noetl.expr.errors import EvaluationError
from noetl.expr.regex import compiled, expanded, matches


def regex_replace(
    context: Context,
    value: Any,
    pattern: str,
    replacement: Any = "",
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
) -> str:
    """The text with every match of `pattern` replaced; `\\1` and `\\g<name>` stand for groups."""
    text, new = context.text(value), context.text(replacement)
    made: list[str] = []
    end = 0
    for match in matches(context, pattern, text, ignorecase, multiline):
        filled = expanded(context, match, new)
        context.produce(match.start() - end)
        made += (text[end : match.start()], filled)
        end = match.end()
        if count and len(made) >= 2 * count:
            break
    context.produce(len(text) - end)
    made.append(text[end:])
    return "".join(made)


def _found(context: Context, match: Any, groups: tuple[Any, ...]) -> Any:
    if match is None:
        return None
    if not groups:
        return match.group()
    return [expanded(context, match, f"\\{group}" if isinstance(group, int) else str(group)) for group in groups]


def regex_search(
    context: Context, value: Any, pattern: str, *groups: Any, ignorecase: bool = False, multiline: bool = False
) -> Any:
    """The first match of `pattern`, or null; with `groups` such as `'\\\\1'`, a list of these."""
    text = context.text(value)
    return _found(context, compiled(context, pattern, text, ignorecase, multiline).search(text), groups)


def regex_match(
    context: Context, value: Any, pattern: str, *groups: Any, ignorecase: bool = False, multiline: bool = False
) -> Any:
    """The match of `pattern` at the beginning of the text, or null; with `groups`, a list of these."""
    text = context.text(value)
    return _found(context, compiled(context, pattern, text, ignorecase, multiline).match(text), groups)


def regex_findall(
    context: Context, value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False
) -> list[Any]:
    """All matches of `pattern`: texts, or lists of texts if it has several groups."""
    text = context.text(value)
    found: list[Any] = []
    for match in matches(context, pattern, text, ignorecase, multiline):
        context.budget.items(1)
        groups = match.groups()
        context.produce(match.end() - match.start())
        found.append(
            [group or "" for group in groups] if len(groups) > 1 else groups[0] or "" if groups else match.group()
        )
    return found


def regex_escape(context: Context, value: Any) -> str:
    """The text as a pattern that matches exactly it."""
    text = context.text(value)
    context.produce(len(text) * 2)
    if "\0" in text:
        raise EvaluationError("a pattern cannot hold a zero character")
    return re.escape(text)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "regex_escape": regex_escape,
    "regex_findall": regex_findall,
    "regex_match": regex_match,
    "regex_replace": regex_replace,
    "regex_search": regex_search,
}
