"""Tree that templates are lowered to; compiled, analysed and partially evaluated.

Compared with Jinja2's tree, names are resolved (a `Path` into the scope or a `Local`), constant lookups are one node,
chains are flat, and unknown or forbidden constructs are a `Fails` with its problem. Data only.
Tested in tests/unit/expr/lowering/test_reads.py, test_compile.py, test_partial.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from msgspec import Struct
from msgspec.structs import fields

from noetl.expr.builtins.registry import Callee
from noetl.expr.lowering.problems import Problem
from noetl.expr.runtime.undefined import Path


class Const(Struct, eq=False):
    """A value known in advance."""

    value: Any


class Reading(Struct, eq=False):
    """A constant path into the scope."""

    path: Path
    offset: int


class Local(Struct, eq=False):
    """Template variable. Slots are tried in order, innermost first, then the fallback."""

    name: str
    slots: tuple[int, ...]
    fallback: Reading | None
    copied: bool  # a namespace is copied: only `set` may change it


class Items(Struct, eq=False):
    """Constant keys looked up in a value, one after the other."""

    base: Expr
    keys: Path
    path: Path


class Item(Struct, eq=False):
    """A computed key looked up in a value."""

    base: Expr
    key: Expr
    path: Path


class Range(Struct, eq=False):
    """Slice of a list or string: `rows[1:3]`."""

    base: Expr
    bounds: tuple[Expr | None, Expr | None, Expr | None]
    offset: int


class Sequence(Struct, eq=False):
    """List or, during the evaluation, a tuple."""

    items: tuple[Expr, ...]
    is_tuple: bool


class Pairs(Struct, eq=False):
    """A map."""

    pairs: tuple[tuple[Expr, Expr], ...]
    offset: int


class Unary(Struct, eq=False):
    """`-x` or `+x`."""

    sign: str
    value: Expr
    offset: int


class Arithmetic(Struct, eq=False):
    """A chain such as `a + b - c`, from left to right."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    offset: int


class Concat(Struct, eq=False):
    """`a ~ b ~ c`."""

    parts: tuple[Expr, ...]
    offset: int


class Compare(Struct, eq=False):
    """A chain such as `1 < x <= 5`."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    offset: int


class All(Struct, eq=False):
    """`a and b and c`."""

    parts: tuple[Expr, ...]


class AnyOf(Struct, eq=False):
    """`a or b or c`."""

    parts: tuple[Expr, ...]


class Not(Struct, eq=False):
    """`not a`."""

    value: Expr


class Choice(Struct, eq=False):
    """`b if a else c`; without `else`, an undefined value."""

    cases: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


class Arguments(Struct, eq=False):
    positional: tuple[Expr, ...] = ()
    keywords: tuple[tuple[str, Expr], ...] = ()
    more: Expr | None = None  # *list
    more_keywords: Expr | None = None  # **map


class Apply(Struct, eq=False):
    """A filter or a test on a value."""

    callee: Callee
    value: Expr
    arguments: Arguments
    offset: int


class Call(Struct, eq=False):
    """A function."""

    callee: Callee
    arguments: Arguments
    offset: int


class Method(Struct, eq=False):
    """Method call; the value's type selects the method."""

    name: str
    value: Expr
    arguments: Arguments
    offset: int


class Get(Struct, eq=False):
    """`path.get('key', fallback)`: the value at the longer path, or the fallback."""

    read: Reading
    fallback: Expr


class Fails(Struct, eq=False):
    """Unknown or forbidden construct. `parts` are kept for their reads."""

    problem: Problem
    parts: tuple[Expr, ...] = ()


Expr = (
    Const | Reading | Local | Items | Item | Range | Sequence | Pairs | Unary | Arithmetic | Concat | Compare
    | All | AnyOf | Not | Choice | Apply | Call | Method | Get | Fails
)  # fmt: skip


class Text(Struct, eq=False):
    """Text as it stands."""

    text: str


class Output(Struct, eq=False):
    """`{{ … }}` in text."""

    value: Expr
    offset: int


class If(Struct, eq=False):
    """`{% if %}`, `{% elif %}`, `{% else %}`."""

    cases: tuple[tuple[Expr, Body], ...]
    otherwise: Body


class For(Struct, eq=False):
    """`{% for %}` with its filter and its `else`."""

    target: Target
    values: Expr
    test: Expr | None
    body: Body
    otherwise: Body
    loop: int | None  # slot of `loop`, if the body uses it
    fresh: tuple[int, ...]  # slots cleared at every iteration
    offset: int


class Set(Struct, eq=False):
    """`{% set x = … %}`."""

    target: Target
    value: Expr
    offset: int


class SetBlock(Struct, eq=False):
    """`{% set x %}…{% endset %}`: the text, through the filters if any."""

    target: Target
    body: Body
    slot: int  # holds the text for the filters
    filters: Expr | None
    offset: int


class SetField(Struct, eq=False):
    """`{% set ns.x = … %}` on a namespace."""

    slot: int
    field: str
    value: Expr
    offset: int


class Refused(Struct, eq=False):
    """Unsupported statement."""

    problem: Problem


Target = int | tuple["Target", ...]
Statement = Text | Output | If | For | Set | SetBlock | SetField | Refused
Body = tuple[Statement, ...]


_FIELDS: Final[Mapping[type, tuple[str, ...]]] = {
    kind: tuple(field.name for field in reversed(fields(kind)))
    for kind in (Arguments, *get_args(Expr), *get_args(Statement))
}


def parts_of(node: Any) -> Iterator[Any]:
    """Iterate over every node, statement and call below a node or body, node first."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(reversed(item))
            continue
        names = _FIELDS.get(type(item))
        if names is not None:
            yield item
            stack.extend([getattr(item, name) for name in names])
