"""Hostile expressions over every operator, filter, test, method and function.

They are generated from the tables: a new callable is covered without a change here. `DATA` holds what makes an operation
cost more than it looks: long texts, large integers, lists of one long text, patterns with large programs.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from noetl.expr.builtins import methods
from noetl.expr.builtins.functions import FUNCTIONS
from noetl.expr.builtins.tables import FILTERS, TESTS
from noetl.expr.runtime.operators import ARITHMETIC, COMPARISONS

DATA: Final[dict[str, Any]] = {
    "text": "a" * 90_000, "words": "ab " * 30_000, "wide": "\U000e0001" * 30_000, "sharp": "ß" * 90_000,
    "lines": "\n" * 90_000, "hyphens": "a-" * 40_000, "quotes": "'" * 90_000, "digits": "1" * 4_000, "run": "a" * 29_999,
    "front": "b" + "a" * 98, "back": "a" * 98 + "b", "chars": "bcdefghijklmnopqrstuvwxyz" * 400 + "a",
    "huge": 2**14_000 + 1, "large": 2**7_000 + 3, "minus": -(2**14_000) + 7, "real": 1.5e300, "n": 7,
    "numbers": list(range(20_000)), "texts": ["a" * 90_000] * 2_000, "integers": [2**14_000 + 1] * 2_000,
    "lists": [[1]] * 20_000, "tables": [list(range(100))] * 200, "pairs": [["k" * 40_000, "v" * 40_000]] * 500,
    "keys": {str(key): key for key in range(20_000)},
    "rows": [{"a": key, "key": str(key), "value": key} for key in range(5_000)],
    "long_rows": [{"a": "x" * 90_000, "key": "x" * 90_000, "value": 1}] * 2_000,
    "json": "[" + "{}," * 20_000 + "{}]", "dots": "a." * 10_000 + "a", "commas": "a," * 5_000 + "a",
    "pattern": "(a|aa|aaa|aaaa){1,40}b", "states": "[ab]*a[ab]{60}b", "nested": "((a{1,30}){1,30})",
    "letters": "(?i)\\pL{1,50}", "twice": "%Y%Y", "stamp": "%Y-%m-%dT%H:%M:%S %j %p %A", "day": "%d%m%y%H%M%S%j%U%w",
    "percents": "%s" * 20_000, "braces": "{}" * 20_000, "half": "\ud800",
}  # fmt: skip
# A tuple and a list whose items are shared: written out, each would have 2^60 items.
_DOUBLED: Final = (
    "{% set ns = namespace(t=1, l=1) %}{% for i in range(60) %}{% set ns.t = (ns.t, ns.t) %}{% set ns.l = [ns.l, ns.l] %}"
    "{% endfor %}"
)
_REPEATED: Final = (
    "{%% for o in range(1000) %%}{%% for k in range(1000) %%}{%% set z = (%s) %%}{%% endfor %%}{%% endfor %%}"
)
VALUES: Final = (*DATA, "ns.t", "ns.l", "(text ~ k)", "''", "0", "[]", "missing", "missing.a[0]")
_ARGUMENTS: Final = (*VALUES, "'a'", "1", "-1", "300", "-300", "1000000000", "true", "{}", "k", "0.5")
_BY_TYPE: Final = (
    (
        methods.TEXT,
        ("text", "words", "wide", "sharp", "lines", "quotes", "run", "percents", "braces", "digits", "half"),
    ),
    (methods.LIST, ("numbers", "texts", "integers", "lists", "tables", "ns.t", "ns.l")),
    (methods.MAP, ("keys",)),
    (methods.DATETIME, ("('2026-01-01' | to_datetime)",)),
    (methods.DURATION, ("timedelta(days=1)",)),
)

Make = Callable[[random.Random], str]


def _call(call: Callable[..., Any], skip: int, chance: random.Random) -> str:
    """Return random arguments that fit a signature."""
    written: list[str] = []
    by_name = False
    for parameter in list(inspect.signature(call).parameters.values())[skip:]:
        value = chance.choice(_ARGUMENTS)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            written += [chance.choice(_ARGUMENTS) for _ in range(chance.randrange(3))]
            by_name = True
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            written.append(f"a={value}")
        elif parameter.default is inspect.Parameter.empty:
            written.append(value)
        elif chance.random() < 0.5:
            written.append(f"{parameter.name.rstrip('_')}={value}")
            by_name = True
        elif not by_name and chance.random() < 0.5:
            written.append(value)
        else:
            by_name = True
    return f"({', '.join(written)})"


def _applied(form: str, name: str, call: Callable[..., Any], values: tuple[str, ...], skip: int) -> Make:
    return lambda chance: form % (chance.choice(values), name, _call(call, skip, chance))


def _filled(form: str) -> Make:
    """Return a maker that fills in values and arguments for `%s`."""
    return lambda chance: form % tuple(chance.choice(_ARGUMENTS) for _ in range(form.count("%s")))


def _called(name: str, call: Callable[..., Any]) -> Make:
    return lambda chance: name + _call(call, 1, chance)


def makers() -> Iterator[tuple[str, Make]]:
    """Yield a name and a maker of expressions for every operator and callable."""
    for name, callee in FILTERS.items():
        yield f"filter {name}", _applied("%s | %s%s", name, callee.call, VALUES, 2)
        if name not in ("map", "select", "reject", "selectattr", "rejectattr"):
            yield f"map {name}", _filled(f"%s | map('{name}') | list")
    for name, callee in TESTS.items():
        if name.isidentifier():
            yield f"test {name}", _applied("%s is %s%s", name, callee.call, VALUES, 2)
        yield f"select {name}", _filled(f"%s | select('{name}') | list")
        yield f"reject {name}", _filled(f"%s | reject('{name}', %s) | list")
    for table, values in _BY_TYPE:
        for name, call in table.items():
            yield f"method {name} of {values[0]}", _applied("%s.%s%s", name, call, values, 2)
    for name, callee in FUNCTIONS.items():
        if callee.pure:
            yield f"function {name}", _called(name, callee.call)
    for sign in (*ARITHMETIC, *COMPARISONS, "~", "and", "or"):
        yield f"operator {sign}", _filled(f"%s {sign.replace('%', '%%')} %s {sign.replace('%', '%%')} %s")
    for form in ("-%s", "+%s", "not %s", "%s[%s]", "%s[%s:%s]", "%s[::%s]", "[%s, %s]", "(%s, %s)", "{'a': %s}", "{%s: %s}",
                 "%s if %s else %s", "%s in ['a', 'b']", "%s == 'a'", "%s.a.b.c", "%s < 1"):  # fmt: skip
        yield f"form {form}", _filled(form)


def repeated(expression: str) -> str:
    """Return a template that evaluates an expression until its budget ends."""
    return _DOUBLED + _REPEATED % expression


# Statements whose variables grow with each iteration.
GROWING: Final = tuple(
    f"{{% set ns = namespace(x={start}) %}}{{% for o in range(1000) %}}{{% for k in range(1000) %}}"
    f"{{% set ns.x = {step} %}}{{% endfor %}}{{% endfor %}}{{{{ {end} }}}}"
    for start, step, end in (
        ("1", "(ns.x, ns.x)", "ns.x in {}"),
        ("1", "(ns.x, ns.x)", "{}[ns.x]"),
        ("1", "(ns.x, ns.x)", "{}.get(ns.x)"),
        ("1", "(ns.x, ns.x)", "ns.x in ['a', 'b']"),
        ("1", "(ns.x, ns.x)", "[ns.x] | unique | list"),
        ("1", "(ns.x, ns.x)", "ns.x == ns.x"),
        ("1", "[ns.x, ns.x]", "ns.x | string"),
        ("1", "[ns.x, ns.x]", "ns.x | flatten | length"),
        ("1", "{'a': ns.x, 'b': ns.x}", "ns.x | tojson"),
        ("1", "{'a': ns.x, 'b': ns.x}", "ns.x | combine(ns.x, recursive=true)"),
        ("missing", "ns.x.a", "ns.x.b"),
        ("missing", "ns.x[k]", "ns.x"),
        ("3", "ns.x * ns.x", "ns.x"),
        ("3", "ns.x + ns.x", "ns.x % 7"),
        ("3", "ns.x ** 2", "ns.x // 3"),
        ("'a'", "ns.x ~ ns.x", "ns.x | length"),
        ("'a'", "ns.x + 'b'", "ns.x.rfind('ba')"),
        ("[]", "ns.x + [k]", "ns.x | sort"),
        ("[]", "[ns.x] + ns.x", "ns.x | string | length"),
        ("'x'", "ns.x | tojson", "ns.x"),
        ("'x'", "ns.x | urlencode | b64encode", "ns.x"),
        ("'ß'", "ns.x.upper() ~ ns.x", "ns.x"),
        ("dict()", "dict(ns.x, a=ns.x)", "ns.x"),
    )
)
