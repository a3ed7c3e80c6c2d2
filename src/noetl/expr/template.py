"""Template: compiled once, evaluated often.

`compile_template` parses the source, resolves what it reads and collects problems. Closures are made on first
evaluation, so checking a playbook does not pay for running it. Templates are immutable, and cached by source up to a
bound of memory.

    plain       no template delimiter: evaluates to its source
    expression  exactly one `{{ … }}`, white space around it allowed: the value keeps its type
    text        anything else: evaluates to a string

The caller passes functions that depend on the moment (`now`, `gen_uuid`, `done`, `ok`, `fail`) as `functions`. With
`strict`, writing an undefined value into text is an error. Values are shared with the scope, not copied: the caller must
not change them. Tested in tests/unit/expr/test_template.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, final

from jinja2 import nodes

from noetl.expr.analysis import spliced_reads, values_compared
from noetl.expr.compiler.closures import FAILURES, MISSING, Code
from noetl.expr.compiler.expressions import Compiler
from noetl.expr.compiler.statements import text_code
from noetl.expr.errors import EvaluationError
from noetl.expr.lowering import tree
from noetl.expr.lowering.problems import Problem
from noetl.expr.lowering.reads import Read
from noetl.expr.lowering.statements import StatementLowering
from noetl.expr.partial import UNKNOWN, text_of, truth_of
from noetl.expr.runtime.budget import Budget, Context
from noetl.expr.runtime.running import RUNNING
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.syntax.parser import has_template, parse

Kind = Literal["plain", "expression", "text"]
Functions = Mapping[str, Callable[..., Any]]
# Accepted results of a condition written as text; anything else is an error.
_TRUE: Final = frozenset({"true", "1", "yes", "on"})
_FALSE: Final = frozenset({"", "false", "0", "no", "off", "none", "null"})
# Checks scan all templates of a playbook in order, again and again: a cache smaller than their sum would never hit. 1,000
# steps have about 4,000 templates of 15 KB.
_KEPT_BYTES: Final = 128_000_000
_UNEXPECTED: Final = (*FAILURES, RecursionError, MemoryError)


@final
class Template:
    __slots__ = (
        "_body", "_light", "_run", "_slots", "_traced", "_weight", "constant", "kind", "memory", "problems", "reads",
        "source",
    )  # fmt: skip

    source: str
    kind: Kind
    reads: tuple[Read, ...]
    problems: tuple[Problem, ...]
    constant: bool
    memory: int  # bytes that it takes when it was evaluated, about
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
        put(self, "memory", 10_000 + 1_500 * lowering.size + 3 * len(source))
        put(self, "_body", body)
        put(self, "_slots", lowering.slot_count)
        put(self, "_light", None)
        put(self, "_run", None)
        put(self, "_traced", None)
        put(self, "_weight", 0)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("templates are immutable")

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
        """Return the value over this data; an `Undefined` if what it reads is missing."""
        if self._light is not None:
            if budget is not None:
                budget.spend(self._weight)
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
        """Return the value and what was read: dotted path → value, `Undefined` if missing."""
        trace: dict[str, Any] = {}
        context = Context(scope, budget or Budget(), functions, strict, [MISSING] * self._slots, trace)
        run = self._traced
        if run is None:
            self._prepare()
            run = self._compile(Compiler(traced=True))[0]
            object.__setattr__(self, "_traced", run)
        return (self._perform if self._light is None else self._perform_light)(run, context), trace

    def test(
        self, scope: Mapping[str, Any], budget: Budget | None = None, *, functions: Functions | None = None
    ) -> bool:
        """Whether the condition holds. Text must be one of the words for true or false."""
        value = self.evaluate(scope, budget=budget, functions=functions)
        return bool(value) if self.kind == "expression" else _truth(value)

    def decide(self, known: Mapping[str, Any]) -> bool | None:
        """Whether the condition holds given these dotted paths; None if undecided."""
        if not isinstance(self._body, tuple):
            return truth_of(self._body, known) if self.kind == "expression" else _word(self.source)
        text = text_of(self._body, known, self._slots)
        return None if text is UNKNOWN else _word(text)

    def values_compared(self, path: str) -> frozenset[Any]:
        """Constants that the value at a dotted path is compared with."""
        return values_compared(self._body, path)

    @property
    def body(self) -> tree.Expr | tree.Body:
        return self._body

    @property
    def slots(self) -> int:
        return self._slots

    def spliced(self, harmless: frozenset[str]) -> tuple[Read, ...]:
        """Reads whose text may reach the result unchanged, through none of these filters."""
        found = {reading.offset for reading in spliced_reads(self._body, harmless)}
        return tuple(read for read in self.reads if read.offset in found)

    def _compile(self, compiler: Compiler) -> tuple[Callable[[Context], Any], Code | None]:
        if isinstance(self._body, tuple):
            return text_code(self._body, compiler), None
        code = compiler.code(self._body)
        run = code.run
        return (lambda context: run(context.scope)) if code.light else run, code

    def _prepare(self) -> Callable[[Context], Any]:
        compiler = Compiler()
        run, code = self._compile(compiler)
        put = object.__setattr__
        put(self, "_weight", compiler.weight)
        put(self, "_run", run)
        if code is not None and code.light:
            put(self, "_light", code.run)
        return run

    def _perform_light(self, run: Callable[[Context], Any], context: Context) -> Any:
        """Evaluate what no watchdog needs to know of: its cost is bounded by its length."""
        context.spend(self._weight)
        try:
            return run(context)
        except _UNEXPECTED as error:
            raise _unexpected(error) from error

    def _perform(self, run: Callable[[Context], Any], context: Context) -> Any:
        RUNNING.enter(context.budget, self.source)
        try:
            context.spend(self._weight)
            return _finish(context, run(context), self._light is None)
        except _UNEXPECTED as error:
            raise _unexpected(error) from error
        finally:
            RUNNING.leave(context.budget)


def _unexpected(error: BaseException) -> EvaluationError:
    if isinstance(error, RecursionError):
        return EvaluationError("the data or the template is nested too deeply")
    if isinstance(error, MemoryError):
        return EvaluationError("not enough memory to evaluate the template")
    return EvaluationError(f"the template cannot be evaluated over this data: {error}")


def _finish(context: Context, value: Any, made: bool) -> Any:
    """Check the size of a value made here, and replace its tuples by lists."""
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
        message = f"the condition evaluates to `{value[:80]}`, which is neither true nor false"
        raise EvaluationError(message, None, "put the whole condition in one `{{ … }}`")
    return truth


def _only_expression(parsed: nodes.Template) -> nodes.Node | None:
    if len(parsed.body) != 1 or not isinstance(parsed.body[0], nodes.Output):
        return None
    found: list[nodes.Node] = []
    for part in parsed.body[0].nodes:
        if not isinstance(part, nodes.TemplateData):
            found.append(part)
        elif not part.data.isspace():
            return None
    return found[0] if len(found) == 1 else None


@final
class _Cache:
    """Templates by source, in two generations; the older one is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most // 2
        self._size = 0
        self._young: dict[str, Template] = {}
        self._old: dict[str, Template] = {}

    def get(self, source: str) -> Template:
        found = self._young.get(source)
        if found is None:
            found = self._old.get(source) or Template(source)
            self._size += found.memory
            if self._size > self._most:
                self._old, self._young, self._size = self._young, {}, found.memory
            self._young[source] = found
        return found


_cache: Final = _Cache(_KEPT_BYTES)


def compile_template(source: str) -> Template:
    """Return the compiled template, cached. Raises TemplateSyntaxError."""
    return _cache.get(source)


def compile_condition(source: str) -> Template:
    """Return the compiled condition; `test` evaluates it. Raises TemplateSyntaxError."""
    return compile_template(source)
