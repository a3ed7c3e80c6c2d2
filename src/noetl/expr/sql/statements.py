"""Render templates in SQL by lexical position, and split SQL into statements.

    value position            a literal of the value's type: 7, 'O''Brien', NULL, TRUE, '{"a": 1}'
    inside quotes             escaped text, not twice where the author's own replace("'", "''") did it
    where a name is expected  a quoted identifier, dots kept
    in a comment              text that cannot end the comment
    `| raw`                   the text unchanged

A value never changes how the SQL around it is parsed; where that cannot be guaranteed, rendering fails. Requires the
server's `standard_conforming_strings`, on by default. Tested in tests/unit/expr/sql/test_statements.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from noetl.expr.builtins.registry import Callee
from noetl.expr.compiler.closures import FAILURES, MISSING
from noetl.expr.compiler.expressions import Compiler
from noetl.expr.compiler.statements import Step, steps_of
from noetl.expr.errors import EvaluationError, TemplateError
from noetl.expr.lowering import tree
from noetl.expr.runtime.budget import Budget, Context
from noetl.expr.runtime.running import RUNNING
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.sql.lexer import Lexer
from noetl.expr.sql.literals import as_text, identifier, literal
from noetl.expr.sql.name_positions import name_expected
from noetl.expr.template import Template

_NOTHING: Final = tree.Const("")
Dialect = Literal["postgres", "duckdb", "snowflake"]
_RAW_FIX: Final = "separate it from the text around it, or mark it `| raw` if it is trusted"
_NUMERIC: Final = (("execution_id",), ("job", "uuid"), ("job", "execution_id"))
_READING: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "SUMMARIZE"})
_WRITING: Final = frozenset({
    "INSERT", "UPDATE", "DELETE", "MERGE", "INTO", "CALL", "COPY", "NEXTVAL", "SETVAL", "PG_NOTIFY", "SET_CONFIG",
    "DBLINK", "DBLINK_EXEC", "LO_IMPORT", "LO_CREATE", "LO_UNLINK", "PG_TERMINATE_BACKEND", "PG_CANCEL_BACKEND",
})  # fmt: skip


_TRANSACTIONS: Final = frozenset({"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"})


class Hole(str):
    """A value in SQL text, before its notation is decided."""

    __slots__ = ("doubled", "number", "raw", "value")
    value: Any
    raw: bool
    doubled: str  # quote that the author doubled
    number: bool  # digits that are a number in SQL


def render_sql(
    template: Template,
    scope: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]] | None = None,
    *,
    dialect: Dialect = "postgres",
    strict: bool = True,
    percent: bool = False,
    budget: Budget | None = None,
) -> Any:
    """Render SQL; `percent` doubles `%` in values, for drivers that use it as a mark.

    A template that is nothing but one `{{ … }}` is the statement itself: there is no place to quote for. It keeps its
    type, so it may be a list of statements.
    """
    context = Context(scope, budget or Budget(), functions, strict, [MISSING] * template.slots)
    out: list[str] = []
    RUNNING.enter(context.budget, template.source)
    try:
        for step in _steps(template):
            step(context, out)
        pieces = _pieces(out, strict)
        if len(pieces) == 1 and template.kind == "expression" and isinstance(out[-1], Hole):
            value = out[-1].value
            if isinstance(value, Undefined) and strict:
                value.fail()
            return value
        text = _write_pieces(pieces, dialect, percent, strict)
    except TemplateError:
        raise
    except (*FAILURES, RecursionError) as error:
        raise EvaluationError(f"cannot render the SQL with this data: {error}") from error
    finally:
        RUNNING.leave(context.budget)
    context.produce(len(text))
    return text


def split_statements(text: str) -> list[str]:
    """Split SQL into statements without semicolons; skips comments alone."""
    if ";" not in text and "--" not in text and "/*" not in text:  # nothing to split
        return [text.strip()] if text.strip() else []
    return [statement for statement, _ in _statements(text)]


def is_read_only(text: str) -> bool:
    """Whether every statement only reads, as far as its text shows; false in doubt."""
    found = _statements(text)
    return bool(found) and all(words[:1] and words[0] in _READING and not _writes(words) for _, words in found)


def ends_transaction(text: str) -> bool:
    """Whether a statement begins or ends a transaction (a savepoint does not)."""
    return any(_ends_transaction(words) for _, words in _statements(text))


def _ends_transaction(words: list[str]) -> bool:
    if words[:2] == ["PREPARE", "TRANSACTION"]:
        return True
    return words[:1] != [] and words[0] in _TRANSACTIONS and not (words[0] == "ROLLBACK" and "TO" in words)


def _writes(words: list[str]) -> bool:
    for index, word in enumerate(words):
        if word == "UPDATE" and index and words[index - 1] in ("FOR", "KEY"):
            continue  # a lock, released with the transaction
        if word in _WRITING or (word == "ANALYZE" and words[0] == "EXPLAIN"):
            return True
    return False


def _statements(text: str) -> list[tuple[str, list[str]]]:
    lexer = Lexer(bodies=False)
    lexer.feed(text)
    found: list[tuple[str, list[str]]] = []
    start = 0
    rest = (len(text), len(text))
    for (end, after), words in zip([*lexer.ends, rest], [*lexer.statements, lexer.code.words], strict=True):
        statement = text[start:end].strip()
        if statement and (words or not _is_comment(statement)):
            found.append((statement, words))
        start = after
    return found


def _is_comment(statement: str) -> bool:
    lexer = Lexer(bodies=False)
    lexer.feed(statement)
    return not lexer.code.tokens


@lru_cache(maxsize=1_024)
def _steps(template: Template) -> tuple[Step, ...]:
    body = template.body
    if not isinstance(body, tuple):
        body = (tree.Output(body, 0),)
    return steps_of(_with_holes(body), Compiler())


def _with_holes(body: tree.Body) -> tree.Body:
    """Make every `{{ … }}` produce a hole; text in a variable is a plain value."""
    made: list[tree.Statement] = []
    for node in body:
        match node:
            case tree.Output(value, offset):
                made.append(tree.Output(tree.Apply(_hole_of(value), value, tree.Arguments(), offset), offset))
            case tree.If(cases, otherwise):
                inner = tuple((test, _with_holes(part)) for test, part in cases)
                made.append(tree.If(inner, _with_holes(otherwise)))
            case tree.For():
                made.append(
                    tree.For(
                        node.target, node.values, node.test, _with_holes(node.body), _with_holes(node.otherwise),
                        node.loop, node.fresh, node.offset,
                    )
                )  # fmt: skip
            case _:
                made.append(node)
    return tuple(made)


def _hole_of(value: tree.Expr) -> Callee:
    raw = _is_raw(value)
    number = isinstance(value, tree.Reading) and value.path in _NUMERIC
    doubled = _doubled_quote(value)

    def hole(context: Context, found: Any) -> Hole:
        context.budget.weigh(found)
        made = Hole()
        made.value, made.raw, made.doubled, made.number = found, raw, doubled, number
        return made

    return Callee("hole", "filter", hole, pure=False)


def _is_raw(value: tree.Expr) -> bool:
    """Whether a value is marked as trusted; every case of a choice must be."""
    if isinstance(value, tree.Choice):
        last = value.otherwise
        return all(_is_raw(chosen) for _, chosen in value.cases) and (last is None or last == _NOTHING or _is_raw(last))
    return isinstance(value, tree.Apply) and value.callee.kind == "filter" and value.callee.name == "raw"


def _doubled_quote(value: tree.Expr) -> str:
    """Return the quote that the author's own `replace` doubles in a filter chain."""
    node: Any = value
    while isinstance(node, tree.Apply | tree.Method):
        name = node.callee.name if isinstance(node, tree.Apply) else node.name
        given = [argument.value for argument in node.arguments.positional if isinstance(argument, tree.Const)]
        if name == "replace" and given[:2] in (["'", "''"], ['"', '""']):
            return str(given[0])
        node = node.value
    return ""


def _pieces(out: list[str], strict: bool) -> list[str]:
    """Join adjacent text, including trusted values, so that no token is split."""
    pieces: list[str] = []
    for part in out:
        if isinstance(part, Hole) and not part.raw:
            pieces.append(part)
            continue
        if isinstance(part, Hole) and strict and isinstance(part.value, Undefined) and not part.value.is_choice:
            part.value.fail()
        text = as_text(part.value) if isinstance(part, Hole) else part
        if pieces and not isinstance(pieces[-1], Hole):
            pieces[-1] += text
        else:
            pieces.append(text)
    return pieces


def _write_pieces(pieces: list[str], dialect: Dialect, percent: bool, strict: bool) -> str:
    lexer = Lexer(snowflake=dialect == "snowflake")
    for index, piece in enumerate(pieces):
        if not isinstance(piece, Hole):
            lexer.feed(piece)
            continue
        following = pieces[index + 1] if index + 1 < len(pieces) else ""
        value = piece.value
        if isinstance(value, Undefined) and strict:
            value.fail()
        if piece.doubled and isinstance(value, str):
            value = value.replace(piece.doubled * 2, piece.doubled)
        _write(lexer, value, piece, following, dialect, percent)
    return lexer.finish()


def _write(lexer: Lexer, value: Any, hole: Hole, following: str, dialect: Dialect, percent: bool) -> None:
    code = lexer.code
    if code.mode != "code":
        text = _inside(code.mode, value, lexer.last)
        lexer.put(text.replace("%", "%%") if percent else text)
        return
    before = lexer.last
    behind = "_" if isinstance(following, Hole) else following[:1]
    if "$" in (before, behind) or before == "\\":
        raise EvaluationError("a value directly beside a `$` or a backslash of the SQL", None, _RAW_FIX)
    if _is_word(before) or _is_word(behind):
        if behind in ("'", '"'):
            raise EvaluationError("a value between a word and a quote of the SQL", None, _RAW_FIX)
        _glue(lexer, value)
        return
    is_text = isinstance(value, str) and not hole.number
    named = name_expected(code, following if not isinstance(following, Hole) else "", is_text)
    if named and code.tokens[-1:] == ["SET"] and not is_text:
        named = False
    if named:
        text = identifier(value)
        code.note("NAME")
    else:
        if code.tokens[-1:] == ["ESCAPE"] and dialect != "snowflake":
            raise EvaluationError("a value directly after a string with escapes", None, _RAW_FIX)
        text = literal(value, dialect, hole.number)
        code.note("ESCAPE" if text.startswith(" E") else "TEXT")
    if (before in "'\"" and before) or (before in "-+" and before and text[:1] == before):
        text = " " + text
    if behind in "'\"" and behind:
        text += " "
    lexer.put(text.replace("%", "%%") if percent else text)


def _is_word(char: str) -> bool:
    return bool(char) and (char.isalnum() or char == "_")


def _glue(lexer: Lexer, value: Any) -> None:
    text = as_text(value)
    if isinstance(value, bool | list | dict | None) or not text.isascii() or not all(map(_is_word, text)):
        message = f"a value beside a word of the SQL must consist of letters, digits and `_`, not {text[:40]!r}"
        raise EvaluationError(message, None, _RAW_FIX)
    if not _is_word(lexer.last):
        lexer.code.note("NAME")
    lexer.put(text)


def _inside(mode: str, value: Any, before: str) -> str:
    text = as_text(value)
    if "\0" in text:
        raise EvaluationError("a string for SQL must not contain the character NUL")
    if mode == "single":
        return text.replace("'", "''")
    if mode == "escape":
        if before == "\\":
            raise EvaluationError("a value directly after a backslash of the SQL", None, _RAW_FIX)
        return text.replace("\\", "\\\\").replace("'", "''")
    if mode == "double":
        return text.replace('"', '""')
    if mode == "line":
        return " ".join(text.split())
    if mode == "block":
        return text.replace("*", " ").replace("/", " ")
    return text  # a dollar quote gets another delimiter if the text contains its own
