"""Regular expressions on RE2: linear in the text, whatever the pattern. Tested in tests/unit/expr/test_regex.py."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from noetl.expr.budget import SLOT, Context
from noetl.expr.errors import EvaluationError
from noetl.expr.operators import kind_of

_PATTERN_LIMIT: Final = 10_000
_GROUP: Final = re.compile(r"\\(?:(\d{1,2})|g<(\w+)>|(.))", re.DOTALL)


@lru_cache(maxsize=256)
def _compiled(pattern: str, ignorecase: bool, multiline: bool) -> Any:
    # Loaded on first use: few templates need it, and checking a playbook should not wait for it.
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
            "look-around and back-references do not exist here" if "perl operator" in text or "escape" in text else None
        )
        raise EvaluationError(f"`{pattern[:80]}` is no regular expression: {text}", None, fix) from None


def compiled(context: Context, pattern: Any, text: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    """The pattern, ready to be run over `text`, with the cost of that drawn."""
    if not isinstance(pattern, str):
        raise EvaluationError(f"a pattern must be a text, not {kind_of(pattern)}")
    if len(pattern) > _PATTERN_LIMIT:
        raise EvaluationError(f"a pattern may have {_PATTERN_LIMIT:,} characters at most")
    context.spend(len(pattern) + len(text) // SLOT)
    return _compiled(pattern, bool(ignorecase), bool(multiline))


def expanded(match: Any, template: str) -> str:
    """A replacement with its `\\1` and `\\g<name>` filled in."""

    def group(found: re.Match[str]) -> str:
        position, name, sign = found.groups()
        if sign is not None:
            return {"n": "\n", "t": "\t"}.get(sign, sign if sign == "\\" else "\\" + sign)
        try:
            return match.group(int(position or name) if (position or name).isdecimal() else name) or ""
        except (IndexError, KeyError):
            raise EvaluationError(f"the pattern has no group `{found.group()}`") from None

    return _GROUP.sub(group, template)
