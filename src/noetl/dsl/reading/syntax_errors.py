"""Explain syntax errors of the YAML parser: position, likely cause and correction.

The parser often reports an error long after the mistake. Tested in tests/unit/dsl/reading/test_parse_syntax.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import yaml

from noetl.dsl.reading.problems import ReadProblem

_TEMPLATE_OPENING: Final = re.compile(r"(?:^|: +|- +|[\[{,])\s*(\{[{%#])")
_TEMPLATE_CLOSING: Final = {"{{": "}}", "{%": "%}", "{#": "#}"}
_KEY_WITHOUT_SPACE: Final = re.compile(r"\s*(?:- +)*([\w.-]+):(?=[^\s:/])")
_SECOND_COLON: Final = re.compile(r"\s*(?:- +)*[^\s:#'\"][^:#]*:\s+(.+)")
_CONFLICT: Final = re.compile(r"(?:<{7}|={7}|>{7})(?=\s|$)", re.MULTILINE)
_BRACKET: Final = (
    "Write the missing mark. A value that contains a comma, a bracket or a quote must be in quotes as a whole."
)
_COMMENT: Final = re.compile(r"\s+#.*")
_BEFORE_A_VALUE: Final = re.compile(r"(?:[:\-]\s+|[\[{,]\s*)\Z")
_TWO_WORDS: Final = re.compile(r"((?:- )?\w+) +(\S.*)")
_WORD: Final = re.compile(r"[^\s,\[\]{}]+|\S")
_LINE: Final = re.compile(r"[^\r\n]{0,1000}")


class _Error(NamedTuple):
    text: str
    problem: str
    at: int
    context: str
    context_at: int

    def line_start(self, offset: int) -> int:
        return max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1

    def line(self, offset: int) -> str:
        match = _LINE.match(self.text, self.line_start(offset))
        return match[0] if match else ""  # cut: some searches take superlinear time

    def line_number(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def line_above(self, offset: int) -> int:
        start = self.line_start(offset)
        for _ in range(100):
            if start <= 0:
                break
            start = self.line_start(start - 1)
            content = self.line(start).strip()
            if content and not content.startswith("#"):
                return start
        return -1

    def indentation(self, offset: int) -> int:
        line = self.line(offset)
        return len(line) - len(line.lstrip(" "))

    def char(self) -> str:
        return self.text[self.at : self.at + 1]

    def opens_its_line(self) -> bool:
        return not self.text[self.line_start(self.at) : self.at].strip()

    def syntax(self, start: int, message: str, end: int | None = None, fix: str = "") -> ReadProblem:
        if end is None:
            word = _WORD.match(self.text, start)
            end = word.end() if word else start
        return ReadProblem("syntax", start, end, message, fix)

    def rest_of_line(self, start: int, message: str, fix: str = "") -> ReadProblem:
        line = self.text[start : self.line_start(start) + len(self.line(start))]
        return self.syntax(start, message, start + len(_COMMENT.sub("", line).rstrip()), fix)


def explain(text: str, error: yaml.YAMLError) -> ReadProblem:
    """Convert a syntax error to a read problem, with its likely cause."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        at = min(getattr(error, "position", 0), len(text))
        return ReadProblem("not-text", at, at, "This position contains a character that is not text.")
    at = min(error.problem_mark.index, len(text))
    context_at = min(error.context_mark.index, len(text)) if error.context_mark else at
    seen = _Error(text, error.problem or "", at, error.context or "", context_at)
    for recognise in _CAUSES:
        problem = recognise(seen)
        if problem is not None:
            return problem
    return seen.syntax(at, "The text is not valid YAML from here on.")


def unquoted_template(template: str) -> str:
    """Describe how to write a value that begins like a template."""
    return f"A value that begins with {template[:2]} must be in quotes: {quoted(shortened(template))}."


def quoted(text: str) -> str:
    """Quote a value with the quotes that need the least escaping."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def shortened(text: str) -> str:
    """Return a text on one line, cut to fit a message."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 60 else one_line[:57] + "…"


def _conflict(seen: _Error) -> ReadProblem | None:
    for offset in (seen.context_at, seen.at, max(seen.line_above(seen.at), 0)):
        start = seen.line_start(offset)
        if _CONFLICT.match(seen.text, start):
            return seen.rest_of_line(
                start, "The file contains a merge conflict; keep one side and delete the conflict markers."
            )
    return None


def _template(seen: _Error) -> ReadProblem | None:
    for offset in (seen.at, seen.context_at, max(seen.at - 1, 0)):
        line, start = seen.line(offset), seen.line_start(offset)
        for match in _TEMPLATE_OPENING.finditer(line):
            before = line[: match.start(1)]
            if before.count('"') % 2 or before.count("'") % 2 or before.lstrip().startswith("#"):
                continue
            value = _COMMENT.sub("", line[match.start(1) :]).rstrip()
            closing = value.find(_TEMPLATE_CLOSING[match[1]])
            if closing >= 0 and ("{" in before or "[" in before):
                value = value[: closing + 2]
            place = start + match.start(1)
            return seen.syntax(place, unquoted_template(value), place + len(value))
    return None


def _tab(seen: _Error) -> ReadProblem | None:
    if seen.char() != "\t":
        return None
    run = re.compile(r"\t+").match(seen.text, seen.at)
    end = run.end() if run else seen.at + 1
    return ReadProblem("tab", seen.at, end, "A tab is used where YAML allows only spaces.")


def _reserved_start(seen: _Error) -> ReadProblem | None:
    if "cannot start any token" not in seen.problem and "alphabetic or numeric" not in seen.problem:
        return None
    start = seen.context_at if "alphabetic" in seen.problem else seen.at
    line = seen.text[start : seen.line_start(start) + len(seen.line(start))]
    value = _COMMENT.sub("", line).rstrip()
    return seen.rest_of_line(
        start, f"A value cannot begin with '{value[:1]}'; put it in quotes: {quoted(shortened(value))}."
    )


def _open_quote(seen: _Error) -> ReadProblem | None:
    if "quoted scalar" not in seen.context or "unexpected" not in seen.problem:
        return None
    quote = seen.text[seen.context_at : seen.context_at + 1]
    fix = f"Write the closing `{quote}` at the end of the value."
    return seen.syntax(seen.context_at, "The quote that opens here is never closed.", seen.context_at + 1, fix)


def _escape(seen: _Error) -> ReadProblem | None:
    if "quoted scalar" not in seen.context or "quoted scalar" in seen.problem:
        return None
    escape = seen.text[seen.at : seen.at + 2]
    if not escape.startswith("\\"):
        return seen.syntax(seen.context_at, "This text contains an invalid YAML escape.")
    message = f"'{escape}' is not a valid YAML escape; write '\\{escape}', or use single quotes."
    return seen.syntax(seen.at, message, seen.at + 2)


def _tag(seen: _Error) -> ReadProblem | None:
    if "tag" not in seen.problem and "tag" not in seen.context:
        return None
    word = _WORD.match(seen.text, seen.context_at)
    end = word.end() if word else seen.context_at + 1
    return ReadProblem(
        "tag", seen.context_at, end, f"The tag {shortened(seen.text[seen.context_at : end])} is unknown."
    )


def _missing_space(seen: _Error) -> ReadProblem | None:
    if "mapping values" not in seen.problem and "expected ':'" not in seen.problem:
        return None
    places = (seen.line_start(seen.context_at), seen.line_above(seen.at), seen.line_start(seen.at))
    for start in places:
        match = _KEY_WITHOUT_SPACE.match(seen.text, start) if start >= 0 else None
        if match:
            message = f"A space is missing after '{match[1]}:'."
            return seen.syntax(match.start(1), message, match.end(), f"Write `{match[1]}: ` with a space.")
    return None


def _missing_colon(seen: _Error) -> ReadProblem | None:
    if "expected ':'" in seen.problem:
        if seen.text.startswith("-", seen.context_at):
            return seen.syntax(seen.context_at, "A space is missing after '-'.", fix="Write `- ` with a space.")
        word = shortened(seen.line(seen.context_at).strip())
        message = f"A colon is missing: '{word}' is neither a key with a value nor part of the value above."
        return seen.rest_of_line(seen.context_at, message, _with_colon(word))
    if "mapping values" not in seen.problem:
        return None
    return _colon_in_value(seen) or _value_continues(seen)


def _colon_in_value(seen: _Error) -> ReadProblem | None:
    start = seen.line_start(seen.at)
    match = _SECOND_COLON.match(seen.line(seen.at))
    if match is None or seen.at < start + match.start(1):
        return None
    value = _COMMENT.sub("", match[1]).rstrip()
    message = f"This value contains ': '; put it in quotes: {quoted(shortened(value))}."
    return seen.syntax(start + match.start(1), message, start + match.start(1) + len(value))


def _value_continues(seen: _Error) -> ReadProblem | None:
    above = seen.line_above(seen.at)
    start = seen.line_start(seen.at) + seen.indentation(seen.at)
    if above < 0:
        return None
    if ":" not in seen.line(above):
        place = above + seen.indentation(above)
        word = shortened(seen.line(above).strip())
        return seen.rest_of_line(place, f"A colon is missing: '{word}' is not a key with a value.", _with_colon(word))
    if seen.indentation(seen.at) > seen.indentation(above):
        message = f"This line is indented deeper than line {seen.line_number(above)}, whose key already has a value."
        fix = f"Indent it like the key of line {seen.line_number(above)}, or remove the value of that line."
        return seen.rest_of_line(start, message, fix)
    return None


def _with_colon(line: str) -> str:
    """Return how to write a line that lacks the colon after its key."""
    match = _TWO_WORDS.fullmatch(line)
    return f"Write `{match[1]}: {match[2]}`." if match else "Write the key, a colon and a space before the value."


def _after_quote(seen: _Error) -> ReadProblem | None:
    before = seen.text[: seen.at].rstrip(" \t")
    if seen.opens_its_line() or not before.endswith(("'", '"')) or "expected" not in seen.problem:
        return None
    quote = before[-1]
    opening = before.rfind(quote, 0, len(before) - 1)
    if (
        opening >= 0
        and "\n" in before[opening:]
        and _BEFORE_A_VALUE.search(seen.text, seen.line_start(opening), opening)
    ):
        message = f"The quote that opens here is not closed on its line; the next quote is on line {seen.line_number(seen.at)}."
        return seen.syntax(opening, message, opening + 1)
    advice = "double the quote inside" if quote == "'" else 'write the quote inside as \\"'
    message = f"The quoted text ends before this; put the whole value in one pair of quotes, or {advice}."
    return seen.rest_of_line(seen.at, message)


def _after_alias(seen: _Error) -> ReadProblem | None:
    line_start = seen.line_start(seen.at)
    match = re.compile(r".*?[:\-,\[{] *(\*.*)").match(seen.text[line_start : min(seen.at, line_start + 1000)])
    if match is None or "expected" not in seen.problem:
        return None
    start = line_start + match.start(1)
    value = _COMMENT.sub("", seen.text[start : line_start + len(seen.line(seen.at))]).rstrip()
    return seen.rest_of_line(start, f"A value that begins with '*' must be in quotes: {quoted(shortened(value))}.")


def _open_bracket(seen: _Error) -> ReadProblem | None:
    closing = next((c for c in "]}" if f"expected ',' or '{c}'" in seen.problem), None)
    at_end = not seen.text[seen.at :].strip() and "flow" in seen.context
    if closing is None and not at_end:
        return None
    opening = seen.text[seen.context_at : seen.context_at + 1]
    is_below = seen.char() == ":" and seen.line_start(seen.at) > seen.context_at
    if opening in ("[", "{") and (at_end or is_below):
        message = f"The '{opening}' that opens here is not closed, or a comma is missing before line {seen.line_number(seen.at)}."
        return seen.syntax(seen.context_at, message, seen.context_at + 1, _BRACKET)
    if at_end:
        return seen.syntax(seen.at, "The text ends inside an unclosed bracket.", fix=_BRACKET)
    return seen.syntax(seen.at, f"A ',' or the closing '{closing}' is missing before this.", fix=_BRACKET)


def _stray_mark(seen: _Error) -> ReadProblem | None:
    if seen.char() not in ("]", "}", ",") or "expected" not in seen.problem:
        return None
    if "flow" in seen.context:
        message = f"A value is missing before this '{seen.char()}'."
        return seen.syntax(seen.at, message, seen.at + 1, "Write the value, or remove the mark.")
    if "block node" in seen.context:
        return seen.syntax(seen.at, f"A value cannot begin with '{seen.char()}'; put it in quotes.", seen.at + 1)
    message = f"This '{seen.char()}' has no matching opening bracket."
    return seen.syntax(seen.at, message, seen.at + 1, "Remove it, or put the value in quotes.")


def _missing_key(seen: _Error) -> ReadProblem | None:
    if seen.char() != ":" or not seen.problem.endswith(("expected key", "node content")):
        return None
    return seen.syntax(seen.at, "A key is missing before this ':'.", seen.at + 1, "Write the key before the colon.")


def _inline_list(seen: _Error) -> ReadProblem | None:
    if "block sequence entries" not in seen.problem:
        return None
    message = "A list item cannot be on the line of its key; start it on a new line, or put the value in quotes."
    return seen.rest_of_line(seen.at, message)


def _block_header(seen: _Error) -> ReadProblem | None:
    if "block scalar" not in seen.context:
        return None
    mark = seen.text[seen.context_at : seen.context_at + 1]
    message = f"Nothing may follow '{mark}' on its line: begin the text on the next line, or put the value in quotes."
    return seen.rest_of_line(seen.at, message)


def _indentation(seen: _Error) -> ReadProblem | None:
    if not seen.opens_its_line() or "expected" not in seen.problem:
        return None
    here, above = seen.indentation(seen.at), seen.line_above(seen.at)
    item = seen.text.startswith("- ", seen.at)
    if above >= 0 and here == seen.indentation(seen.context_at) and seen.context_at < seen.at:
        wanted = "a key" if "key" in seen.problem else "'- ' and a list item"
        actual = "a list item" if item else "this"
        line = seen.line_number(seen.context_at)
        message = f"At this indentation, {wanted} is expected, not {actual}; it continues line {line}."
        return seen.rest_of_line(seen.at, message)
    if above < 0:
        return None
    message = f"This line is indented by {here}, which matches no line above it (line {seen.line_number(above)}: {seen.indentation(above)})."
    return seen.rest_of_line(seen.at, message)


def _directive(seen: _Error) -> ReadProblem | None:
    if "directive" not in seen.context and "directive" not in seen.problem:
        return None
    return seen.rest_of_line(
        seen.line_start(seen.context_at), "A line that begins with '%' is a YAML directive, and this one is unknown."
    )


_CAUSES: Final[tuple[Callable[[_Error], ReadProblem | None], ...]] = (
    _conflict,
    _tab,
    _template,
    _reserved_start,
    _open_quote,
    _escape,
    _directive,
    _tag,
    _missing_space,
    _missing_colon,
    _missing_key,
    _inline_list,
    _block_header,
    _open_bracket,
    _after_quote,
    _after_alias,
    _stray_mark,
    _indentation,
)
