"""Regex on RE2: time linear in the text, at worst times the pattern's program.

A budget pays for a pattern once, by the size of its program, and for every search by the text. RE2 runs most patterns
as an automaton of constant time a character. It gives up if the automaton has too many states, and then follows every
instruction of the program: a pattern with more than a few pays for that. Tested in tests/unit/expr/runtime/test_regex.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import SLOT, Context
from noetl.expr.runtime.value_types import kind_of, shown

_PATTERN_LIMIT: Final = 10_000
_MOST_MEMORY: Final = 1 << 20  # of a program and its automaton
_MOST_INSTRUCTIONS: Final = 4_000
_MOST_GROUPS: Final = 100
_SMALL: Final = 12  # instructions whose automaton always fits
_KEPT: Final = 64
_GROUP: Final = re.compile(r"\\(?:(\d{1,2})|g<(\w+)>|(.))", re.DOTALL)


@lru_cache(maxsize=_KEPT)
def _compile(pattern: str, ignorecase: bool, multiline: bool) -> Any:
    # Imported on first use: few templates need it, and checking a playbook should not wait for it.
    import re2

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignorecase
    options.max_mem = _MOST_MEMORY
    try:
        compiled = re2.compile(f"(?m){pattern}" if multiline else pattern, options)
        if compiled.programsize <= _MOST_INSTRUCTIONS and compiled.groups <= _MOST_GROUPS:
            return compiled
        raise EvaluationError("the pattern is too large", None, "use fewer groups and smaller repetitions")
    except UnicodeEncodeError:
        raise EvaluationError("a pattern cannot contain half of a surrogate pair") from None
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        fix = (
            "look-around and back-references are not supported" if "perl operator" in text or "escape" in text else None
        )
        raise EvaluationError(f"`{shown(pattern)}` is not a regular expression: {text}", None, fix) from None


def compile_pattern(
    context: Context, pattern: Any, text: str, ignorecase: bool = False, multiline: bool = False
) -> Any:
    """Compile a pattern, and draw the cost of running it over `text`."""
    if not isinstance(pattern, str):
        raise EvaluationError(f"a pattern must be a string, not {kind_of(pattern)}")
    if len(pattern) > _PATTERN_LIMIT:
        raise EvaluationError(f"a pattern must be at most {_PATTERN_LIMIT:,} characters")
    key = (pattern, bool(ignorecase), bool(multiline))
    compiled = context.budget.patterns.get(key)
    if compiled is None:
        context.spend(1_000 + 10 * len(pattern))
        compiled = _compile(*key)
        context.spend(10 * compiled.programsize)
        context.produce(200_000 if compiled.programsize > _SMALL else 10_000)
        context.budget.paid(key, compiled)
    context.spend(60 + 6 * compiled.groups + len(text) // SLOT + _followed(compiled, len(text)) * 16)
    return compiled


def _followed(compiled: Any, size: int) -> int:
    """Return the cost of following all instructions; 0 if an automaton always fits."""
    instructions = compiled.programsize
    return 0 if instructions <= _SMALL else size * instructions * (1 + compiled.groups // SLOT) // 1024


def matches(context: Context, pattern: Any, text: str, ignorecase: bool, multiline: bool) -> Iterator[Any]:
    """Iterate over matches, drawing for each: it may have scanned the whole text."""
    before = (-1, -1)
    compiled = compile_pattern(context, pattern, text, ignorecase, multiline)
    for match in compiled.finditer(text):
        rest = len(text) - match.start()
        context.spend(60 + 6 * compiled.groups + max(rest // 256, _followed(compiled, rest)))
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
