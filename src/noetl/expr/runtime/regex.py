"""Regex in linear time (RE2). Tested in tests/unit/expr/runtime/test_regex.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.value_types import kind_of

_PATTERN_LIMIT: Final = 10_000
_GROUP: Final = re.compile(r"\\(?:(\d{1,2})|g<(\w+)>|(.))", re.DOTALL)


@lru_cache(maxsize=256)
def _compile(pattern: str, ignorecase: bool, multiline: bool) -> Any:
    # Imported on first use: few templates need it, and checking a playbook should not wait for it.
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignorecase
    try:
        return re2.compile(f"(?m){pattern}" if multiline else pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        fix = (
            "look-around and back-references are not supported" if "perl operator" in text or "escape" in text else None
        )
        raise EvaluationError(f"`{pattern[:80]}` is not a regular expression: {text}", None, fix) from None


def compile_pattern(
    context: Context, pattern: Any, text: str, ignorecase: bool = False, multiline: bool = False
) -> Any:
    """Compile a pattern, and draw the cost of running it over `text`."""
    if not isinstance(pattern, str):
        raise EvaluationError(f"a pattern must be a string, not {kind_of(pattern)}")
    if len(pattern) > _PATTERN_LIMIT:
        raise EvaluationError(f"a pattern must be at most {_PATTERN_LIMIT:,} characters")
    context.spend(len(pattern) + len(text) // SLOT)
    return _compile(pattern, bool(ignorecase), bool(multiline))


def matches(context: Context, pattern: Any, text: str, ignorecase: bool, multiline: bool) -> Iterator[Any]:
    """Iterate over matches, drawing for each: it may have scanned the whole text."""
    before = (-1, -1)
    for match in compile_pattern(context, pattern, text, ignorecase, multiline).finditer(text):
        context.spend(16 + (len(text) - match.start()) // 1024)
        # The binding reports an empty match twice if it lies ahead of the search position.
        if match.span() != before:
            yield match
        before = match.span()


def expand(context: Context, match: Any, template: str) -> str:
    """Expand `\\1` and `\\g<name>` in a replacement, drawing for each part."""
    made: list[str] = []
    end = 0
    for found in _GROUP.finditer(template):
        part = template[end : found.start()] + _group_text(match, found)
        context.produce(len(part))
        made.append(part)
        end = found.end()
    context.produce(len(template) - end)
    made.append(template[end:])
    return "".join(made)


def _group_text(match: Any, found: re.Match[str]) -> str:
    position, name, sign = found.groups()
    if sign is not None:
        return {"n": "\n", "t": "\t", "\\": "\\"}.get(sign, "\\" + sign)
    group = position or name
    try:
        return match.group(int(group) if group.isdecimal() else group) or ""
    except (IndexError, KeyError):
        raise EvaluationError(f"the pattern has no group `{found.group()}`") from None
