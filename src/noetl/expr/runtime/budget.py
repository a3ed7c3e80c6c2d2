"""Evaluation budget: operations and bytes, counted and not timed.

Counting keeps evaluation deterministic. An *operation* is work of about 100 ns: one node of a template, one item seen by
a filter, a few characters of a text, a product of two parts of large integers. A *byte* is a character or an item's slot
in a new value. Costs are drawn before they are paid: a repetition, a padding or a join first computes the size of its
result. Several evaluations may share a budget. Another thread may `drain` it: the evaluation ends at its next draw. A
caller may have it drawn in slices, and is called before each further one.
Tested in tests/unit/expr/runtime/test_budget.py and tests/unit/expr/safety/test_hostile.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from noetl.expr.errors import BudgetExceeded, EvaluationError
from noetl.expr.runtime.undefined import Undefined, first_undefined

OPERATIONS: Final = 1_000_000
BYTES: Final = 10_000_000
OPERATIONS_PER_MS: Final = 10_000
INTEGER_BITS: Final = 14_284  # 4,300 digits, the most that Python writes as text
SLOT: Final = 8  # bytes per item of a list or map, besides the item itself
DEPTH: Final = 100  # nesting of lists and maps in a value: the depth every JSON library accepts
_LISTS: Final = (list, tuple)
_WORD: Final = 1 << 64
_FIX: Final = "simplify the template, or do the work in a `python` task"


class Weight(NamedTuple):
    """Result of weighing a value."""

    size: int
    depth: int
    tuples: bool  # contains tuples, which exist only during an evaluation


class Budget:
    """Remaining operations and bytes."""

    __slots__ = (
        "_pause",
        "_reserve",
        "_slice",
        "bytes_left",
        "bytes_limit",
        "operations_left",
        "operations_limit",
        "patterns",
    )

    def __init__(self, operations: int = OPERATIONS, bytes: int = BYTES) -> None:
        self.operations_limit = self.operations_left = operations
        self.bytes_limit = self.bytes_left = bytes
        self.patterns: dict[Any, Any] = {}  # compiled regular expressions that this budget has paid for
        self._reserve = 0  # operations of later slices

    @property
    def operations_used(self) -> int:
        """Operations drawn so far, at most the limit."""
        return self.operations_limit - self._reserve - max(self.operations_left, 0)

    def divide(self, first: int, other: int, pause: Callable[[], None]) -> None:
        """Draw what is left in slices: call `pause` before each one after the first."""
        self._pause, self._slice = pause, other
        whole = self.operations_left + self._reserve
        self.operations_left = min(first, whole)
        self._reserve = whole - self.operations_left

    @property
    def bytes_used(self) -> int:
        """Bytes drawn so far, at most the limit."""
        return self.bytes_limit - max(self.bytes_left, 0)

    def spend(self, operations: int) -> None:
        """Draw operations before doing them."""
        self.operations_left -= operations
        if self.operations_left < 0:
            self._draw_slice()

    def _draw_slice(self) -> None:
        if self._reserve:
            self._pause()
            drawn = min(self._slice - self.operations_left, self._reserve)
            self._reserve -= drawn
            self.operations_left += drawn
        if self.operations_left < 0:
            message = f"this needs more than the {self.operations_limit:,} operations that one evaluation may use"
            raise BudgetExceeded(message, None, _FIX)

    def produce(self, size: int) -> None:
        """Draw bytes before making them."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            message = f"this makes more than the {self.bytes_limit:,} bytes that one evaluation may make"
            raise BudgetExceeded(message, None, _FIX)

    def paid(self, key: Any, compiled: Any) -> None:
        """Keep a regular expression that was compiled and paid for."""
        self.patterns[key] = compiled

    def drain(self) -> None:
        """Take what is left: the evaluation fails at its next draw."""
        self._reserve = 0
        self.operations_left = self.bytes_left = -1

    def items(self, count: int) -> None:
        """Draw for a new list of `count` items."""
        self.spend(count)
        self.produce(count * SLOT)

    def integers(self, left: int, right: int) -> None:
        """Draw for a product or quotient, which takes the product of their lengths."""
        lengths = left.bit_length(), right.bit_length()
        if lengths[0] + lengths[1] > 128:
            self.spend((lengths[0] * lengths[1] >> 16) + (sum(lengths) >> 9))
            self.produce(sum(lengths) >> 3)

    def digits(self, value: int) -> None:
        """Draw for an integer that is written as text."""
        self.integers(value, value)

    def weigh(self, value: Any) -> Weight:
        """Draw the serialized size of `value`: a list that is held twice counts twice."""
        tuples = False
        level, depth, sum_items = [value], 0, 0
        while level:
            depth += 1
            if depth > DEPTH:
                raise EvaluationError(f"the value is nested more than {DEPTH} levels deep")
            size = 0
            below: list[Any] = []
            for item in level:
                kind = type(item)
                if kind is str:
                    # Written as text, a character that is not ASCII may take several.
                    size += len(item) * (1 if item.isascii() else 2) + 2
                elif kind is int:
                    size += 4
                    if not -_WORD < item < _WORD:
                        self.digits(item)
                elif kind is float or item is None:
                    size += 4
                elif isinstance(item, dict):
                    size += SLOT * len(item) + 2
                    below.extend(item.keys())
                    below.extend(item.values())
                elif isinstance(item, _LISTS):
                    size += SLOT * len(item) + 2
                    tuples = tuples or isinstance(item, tuple)
                    below.extend(item)
                else:
                    size += 4
                if size > self.bytes_left:
                    break
            self.spend(len(level) // 2 + 1)
            self.produce(size)
            level, sum_items = below, sum_items + size
        return Weight(sum_items, depth, tuples)


class Fuel:
    """Operations of a decision, a task or a request, shared by its evaluations."""

    __slots__ = ("_last", "_left", "_limit")

    def __init__(self, operations: int = 5 * OPERATIONS) -> None:
        self._limit = self._left = operations
        self._last: Budget | None = None

    def budget(self, milliseconds: Any = None, most: int | None = None) -> Budget:
        """Return the budget of the next evaluation. Raises BudgetExceeded.

        It has `most` operations. A time limit is converted at a fixed rate, equal on every machine.
        """
        if self._last is not None:
            self._left -= self._last.operations_used
        if self._left <= 0:
            message = f"the templates need more than {self._limit:,} operations together"
            raise BudgetExceeded(message, None, _FIX)
        own = OPERATIONS
        if isinstance(milliseconds, int | float):
            own = max(1, int(min(milliseconds * OPERATIONS_PER_MS, self._limit)))
        self._last = Budget(min(own, self._left, own if most is None else most))
        return self._last


def check_bits(bits: int) -> None:
    """Refuse an integer before it is computed."""
    if bits > INTEGER_BITS:
        raise BudgetExceeded(
            f"the number would exceed {INTEGER_BITS:,} bits (4,300 digits)", None, "use smaller numbers"
        )


class Context:
    """One evaluation: its data, budget and local variables."""

    __slots__ = ("budget", "functions", "locals", "scope", "strict", "trace")

    def __init__(
        self,
        scope: Any,
        budget: Budget,
        functions: Any = None,
        strict: bool = False,
        locals: list[Any] | None = None,
        trace: dict[str, Any] | None = None,
    ) -> None:
        self.scope = scope
        self.budget = budget
        self.functions = functions
        self.strict = strict
        self.locals: list[Any] = [] if locals is None else locals
        self.trace = trace

    def spend(self, operations: int) -> None:
        self.budget.spend(operations)

    def produce(self, size: int) -> None:
        self.budget.produce(size)

    def text(self, value: Any) -> str:
        """Return `value` as text. Free for strings; draws the size of anything else."""
        if isinstance(value, str):
            return value
        if isinstance(value, Undefined):
            if self.strict and not value.is_choice:
                value.fail()
            return ""
        if isinstance(value, (*_LISTS, dict)):
            self.budget.weigh(value)
            missing = first_undefined(value) if self.strict else None
            if missing is not None:
                missing.fail()
        elif type(value) is int and not -_WORD < value < _WORD:
            self.budget.digits(value)
        try:
            return str(value)
        except ValueError:
            raise EvaluationError("the number has too many digits to be written as text") from None
