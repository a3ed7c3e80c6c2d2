"""A template: compiled once, evaluated often.

`compile_template` parses a text, resolves what it reads and notes what is wrong with it; closures are made when it is
first evaluated, so that checking a playbook does not pay for running it. Templates are immutable and are kept in a
bounded cache by their source.

    plain       no template mark at all: evaluates to its source
    expression  exactly one `{{ … }}`, white space around it allowed: the value keeps its type
    text        anything else: evaluates to a text

What depends on the moment comes in with the evaluation: `functions` holds `now`, `gen_uuid`, `done`, `ok` and `fail`.
With `strict`, an undefined value that is written into a text is an error instead of nothing. Values are shared with the
scope, not copied: whoever evaluates must not change them. Tested in tests/unit/expr/test_template.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, final

from jinja2 import nodes

from noetl.expr import tree
from noetl.expr.budget import Budget, Context
from noetl.expr.closures import FAILURES, MISSING, Code
from noetl.expr.compared import values_compared
from noetl.expr.compile import Compiler
from noetl.expr.errors import EvaluationError
from noetl.expr.lower_statements import StatementLowering
from noetl.expr.parser import has_template, parse
from noetl.expr.partial import UNKNOWN, text_of, truth_of
from noetl.expr.problems import Problem
from noetl.expr.reads import Read
from noetl.expr.splices import spliced
from noetl.expr.statements import text_code
from noetl.expr.undefined import Undefined

Kind = Literal["plain", "expression", "text"]
Functions = Mapping[str, Callable[..., Any]]
# Texts that a condition written as text may give; anything else is a mistake, not a truth.
_TRUE: Final = frozenset({"true", "1", "yes", "on"})
_FALSE: Final = frozenset({"", "false", "0", "no", "off", "none", "null"})
_LARGE: Final = 8_192
# A template takes 1 to 4 KB. The checks of a playbook go over its templates again and again, and in order: one that has
# more of them than are kept would find none. 1,000 steps have about 4,000.
_KEPT: Final = 16_384
_UNEXPECTED: Final = (*FAILURES, RecursionError, MemoryError)


@final
class Template:
    """A compiled template."""

    __slots__ = (
        "_body", "_light", "_run", "_slots", "_traced", "_weight", "constant", "kind", "problems", "reads", "source",
    )  # fmt: skip

    source: str
    kind: Kind
    reads: tuple[Read, ...]
    problems: tuple[Problem, ...]
    constant: bool
    _body: tree.Expr | tree.Body
    _light: Callable[[Any], Any] | None
    _run: Callable[[Context], Any] | None
    _traced: Callable[[Context], Any] | None
    _slots: int
    _weight: int

    def __init__(self, source: str) -> None:
        put = object.__setattr__
        lowering = StatementLowering()
        kind: Kind = "plain"
        body: tree.Expr | tree.Body = tree.Const(source)
        if has_template(source):
            parsed = parse(source)
            alone = _only_expression(parsed)
            kind = "text" if alone is None else "expression"
            body = lowering.body(parsed.body) if alone is None else lowering.expr(alone)
        put(self, "source", source)
        put(self, "kind", kind)
        put(self, "reads", tuple(sorted(lowering.reads, key=lambda read: read.offset)))
        put(self, "problems", tuple(sorted(lowering.problems, key=lambda problem: problem.offset)))
        put(self, "constant", not lowering.reads and lowering.pure)
        put(self, "_body", body)
        put(self, "_slots", lowering.slot_count)
        put(self, "_light", None)
        put(self, "_run", None)
        put(self, "_traced", None)
        put(self, "_weight", 0)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a template does not change")

    def __repr__(self) -> str:
        return f"Template({self.source!r})"

    def evaluate(
        self,
        scope: Mapping[str, Any],
        *,
        budget: Budget | None = None,
        functions: Functions | None = None,
        strict: bool = False,
    ) -> Any:
        """The value over this data; an `Undefined` if what it reads is not there."""
        if budget is None and self._light is not None:
            try:
                return self._light(scope)
            except _UNEXPECTED as error:
                raise _unexpected(error) from error
        run = self._run or self._prepare()
        context = Context(scope, budget or Budget(), functions, strict, [MISSING] * self._slots)
        return self._perform(run, context)

    def evaluate_traced(
        self,
        scope: Mapping[str, Any],
        *,
        budget: Budget | None = None,
        functions: Functions | None = None,
        strict: bool = False,
    ) -> tuple[Any, dict[str, Any]]:
        """The value, and what was read on the way: dotted path → value, `Undefined` for what was not there."""
        trace: dict[str, Any] = {}
        context = Context(scope, budget or Budget(), functions, strict, [MISSING] * self._slots, trace)
        run = self._traced
        if run is None:
            self._prepare()
            run = self._compiled(Compiler(traced=True))[0]
            object.__setattr__(self, "_traced", run)
        return self._perform(run, context), trace

    def test(
        self,
        scope: Mapping[str, Any],
        budget: Budget | None = None,
        *,
        functions: Functions | None = None,
    ) -> bool:
        """Whether the condition holds. A condition written as text must give one of the words for true or false."""
        value = self.evaluate(scope, budget=budget, functions=functions)
        return bool(value) if self.kind == "expression" else _truth(value)

    def decide(self, known: Mapping[str, Any]) -> bool | None:
        """Whether the condition holds wherever these dotted paths have these values; None if that depends on more."""
        if not isinstance(self._body, tuple):
            return truth_of(self._body, known) if self.kind == "expression" else _word(self.source)
        text = text_of(self._body, known, self._slots)
        return None if text is UNKNOWN else _word(text)

    def values_compared(self, path: str) -> frozenset[Any]:
        """The constants that the value at a dotted path is compared with, by `==`, `!=`, `in` or their tests."""
        return values_compared(self._body, path)

    @property
    def body(self) -> tree.Expr | tree.Body:
        """The tree, for whoever writes its values in another way than as text."""
        return self._body

    @property
    def slots(self) -> int:
        """How many variables it has."""
        return self._slots

    def spliced(self, harmless: frozenset[str]) -> tuple[Read, ...]:
        """The reads whose text may stand in the result as it came, through none of these filters."""
        found = {reading.offset for reading in spliced(self._body, harmless)}
        return tuple(read for read in self.reads if read.offset in found)

    def _compiled(self, compiler: Compiler) -> tuple[Callable[[Context], Any], Code | None]:
        if isinstance(self._body, tuple):
            return text_code(self._body, compiler), None
        code = compiler.code(self._body)
        run = code.run
        return (lambda context: run(context.scope)) if code.light else run, code

    def _prepare(self) -> Callable[[Context], Any]:
        compiler = Compiler()
        run, code = self._compiled(compiler)
        put = object.__setattr__
        put(self, "_weight", compiler.weight)
        put(self, "_run", run)
        if code is not None and code.light:
            put(self, "_light", code.run)
        return run

    def _perform(self, run: Callable[[Context], Any], context: Context) -> Any:
        try:
            context.spend(self._weight)
            return _settled(context, run(context), self._light is None)
        except _UNEXPECTED as error:
            raise _unexpected(error) from error


def _unexpected(error: BaseException) -> EvaluationError:
    if isinstance(error, RecursionError):
        return EvaluationError("the data or the template is nested too deeply")
    if isinstance(error, MemoryError):
        return EvaluationError("there is not enough memory for this")
    return EvaluationError(f"the template cannot be evaluated over this data: {error}")


def _settled(context: Context, value: Any, made: bool) -> Any:
    """A value that leaves: of bearable size if it was made here, and free of tuples."""
    if not made or not isinstance(value, list | tuple | dict):
        return value
    return _without_tuples(value) if context.budget.weigh(value).tuples else value


def _without_tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_tuples(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): _without_tuples(item) for key, item in value.items()}
    return value


def _key(key: Any) -> Any:
    return str(key) if isinstance(key, tuple) else key


def _word(text: Any) -> bool | None:
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _truth(value: Any) -> bool:
    if isinstance(value, Undefined):
        return False
    truth = _word(value)
    if truth is None:
        message = f"the condition gives the text `{value[:80]}`, which is neither true nor false"
        raise EvaluationError(message, None, "put the whole condition in one `{{ … }}`")
    return truth


def _only_expression(parsed: nodes.Template) -> nodes.Node | None:
    """The expression of a template that is nothing but one."""
    if len(parsed.body) != 1 or not isinstance(parsed.body[0], nodes.Output):
        return None
    found: list[nodes.Node] = []
    for part in parsed.body[0].nodes:
        if not isinstance(part, nodes.TemplateData):
            found.append(part)
        elif not part.data.isspace():
            return None
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=_KEPT)
def _small(source: str) -> Template:
    return Template(source)


@lru_cache(maxsize=64)
def _large(source: str) -> Template:
    return Template(source)


def compile_template(source: str) -> Template:
    """The template that a text is. Raises TemplateSyntaxError."""
    return _small(source) if len(source) <= _LARGE else _large(source)


def compile_condition(source: str) -> Template:
    """The condition that a text is: a template whose `test` says whether it holds. Raises TemplateSyntaxError."""
    return compile_template(source)
