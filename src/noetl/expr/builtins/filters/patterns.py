"""Regular expression filters, on RE2.

Tested in tests/unit/expr/runtime/test_regex.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import Context
from noetl.expr.runtime.regex import compile_pattern, expand, matches


def regex_replace(
    context: Context,
    value: Any,
    pattern: str,
    replacement: Any = "",
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
) -> str:
    """Replace every match of `pattern`; `\\1` and `\\g<name>` insert groups."""
    text, new = context.text(value), context.text(replacement)
    made: list[str] = []
    end = 0
    for match in matches(context, pattern, text, ignorecase, multiline):
        filled = expand(context, match, new)
        context.produce(match.start() - end)
        made += (text[end : match.start()], filled)
        end = match.end()
        if count and len(made) >= 2 * count:
            break
    context.produce(len(text) - end)
    made.append(text[end:])
    return "".join(made)


def _match_value(context: Context, match: Any, groups: tuple[Any, ...]) -> Any:
    if match is None:
        return None
    if not groups:
        return match.group()
    return [expand(context, match, f"\\{group}" if isinstance(group, int) else str(group)) for group in groups]


def regex_search(
    context: Context, value: Any, pattern: str, *groups: Any, ignorecase: bool = False, multiline: bool = False
) -> Any:
    """First match of `pattern`, or null; with `groups` (`'\\\\1'`), a list of these."""
    text = context.text(value)
    return _match_value(context, compile_pattern(context, pattern, text, ignorecase, multiline).search(text), groups)


def regex_match(
    context: Context, value: Any, pattern: str, *groups: Any, ignorecase: bool = False, multiline: bool = False
) -> Any:
    """Match of `pattern` at the beginning, or null; with `groups`, a list of these."""
    text = context.text(value)
    return _match_value(context, compile_pattern(context, pattern, text, ignorecase, multiline).match(text), groups)


def regex_findall(
    context: Context, value: Any, pattern: str, ignorecase: bool = False, multiline: bool = False
) -> list[Any]:
    """All matches of `pattern`: strings, or lists of strings if it has several groups."""
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
    """Escape a string into a pattern that matches exactly it."""
    text = context.text(value)
    context.produce(len(text) * 2)
    if "\0" in text:
        raise EvaluationError("a pattern cannot contain a NUL character")
    return re.escape(text)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "regex_escape": regex_escape,
    "regex_findall": regex_findall,
    "regex_match": regex_match,
    "regex_replace": regex_replace,
    "regex_search": regex_search,
}
