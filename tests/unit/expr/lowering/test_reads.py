"""What a template reads is known without running it."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import Read, compile_template


def reads(source: str) -> tuple[Read, ...]:
    return compile_template(source).reads


def paths(source: str) -> list[tuple[str | int, ...]]:
    return [read.path for read in reads(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plain", []),
        ("{{ 1 + 2 }}", []),
        ("{{ a }}", [("a",)]),
        ("{{ outcome.http.status }}", [("outcome", "http", "status")]),
        ("{{ a['b c'][0].d }}", [("a", "b c", 0, "d")]),
        ("{{ rows[-1].x }}", [("rows", -1, "x")]),
        ("{{ a.1.b }}", [("a", 1, "b")]),
        ("{{ a.b == 1 and c.d in [e, 2] }}", [("a", "b"), ("c", "d"), ("e",)]),
        ("{{ x if y else z }}", [("x",), ("y",), ("z",)]),
        ("{{ a | default(b) | replace(c, 'x') }}", [("a",), ("b",), ("c",)]),
        ("{{ [a, {'k': b, c: 1}] }}", [("a",), ("b",), ("c",)]),
        ("{{ -a + b ** c ~ d }}", [("a",), ("b",), ("c",), ("d",)]),
        ("{{ a < b < c }}", [("a",), ("b",), ("c",)]),
        ("{{ a[1:b] }}", [("a",), ("b",)]),
        ("{{ a.split(b) }}", [("a",), ("b",)]),
        ("{{ done('s') and now() }}", []),
        ("{{ range(n) }}", [("n",)]),
        ("{{ a is divisibleby(b) }}", [("a",), ("b",)]),
        ("{{ (a | first).name }}", [("a",)]),
        ("{{ a.b.c.upper() }}", [("a", "b", "c")]),
        ("{{ ctx.get('k') }}", [("ctx", "k")]),
        ("{{ ctx.get('k', d) }}", [("ctx", "k"), ("d",)]),
        ("{{ ctx.get(name) }}", [("ctx",), ("name",)]),
        ("{{ f(a) }}", [("a",)]),
        ("{{ a | nofilter(b) }}", [("a",), ("b",)]),
        ("{{ a is notest(b) }}", [("a",), ("b",)]),
        ("x {{ a }} {% if b %}{{ c }}{% elif d %}{{ e }}{% else %}{{ f }}{% endif %}", [(c,) for c in "abcdef"]),
        ("{% for i in rows %}{{ i.x }}{{ loop.index }}{{ y }}{% endfor %}", [("rows",), ("y",)]),
        ("{% for k, v in m.items() %}{{ k }}{{ v }}{% endfor %}{{ k }}", [("m",), ("k",)]),
        ("{% for i in a if i > b %}{{ i }}{% else %}{{ i }}{% endfor %}", [("a",), ("b",), ("i",)]),
        ("{% set x = a.b %}{{ x.c }}", [("a", "b")]),
        ("{{ x }}{% set x = 1 %}{{ x }}", [("x",)]),
        ("{% if a %}{% set x = 1 %}{% endif %}{{ x }}", [("a",), ("x",)]),
        ("{% if a %}{% set x = 1 %}{% else %}{% set x = 2 %}{% endif %}{{ x }}", [("a",)]),
        ("{% if a %}{% set x = 1 %}{% elif b %}{% set x = 2 %}{% endif %}{{ x }}", [("a",), ("b",), ("x",)]),
        ("{% for i in a %}{% set x = i %}{% endfor %}{{ x }}", [("a",), ("x",)]),
        ("{% set x %}{{ a }}{% endset %}{{ x }}", [("a",)]),
        ("{% set x | replace(b, c) %}{{ a }}{% endset %}{{ x }}", [("a",), ("b",), ("c",)]),
        ("{% set ns = namespace(t=a) %}{% for i in b %}{% set ns.t = ns.t + c %}{% endfor %}{{ ns.t }}", [(x,) for x in "abc"]),
        ("{% set a, b = c %}{{ a }}{{ b }}", [("c",)]),
        ("{{ loop }}", [("loop",)]),
    ],
)  # fmt: skip
def test_paths(source: str, expected: list[tuple[Any, ...]]) -> None:
    assert sorted(paths(source), key=str) == sorted(expected, key=str)


def test_reads_stand_in_the_order_of_the_text() -> None:
    assert paths("{{ a if b else c }} {{ d | default(e) }}") == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert [read.offset for read in reads("{{ b }}{{ a }}")] == [3, 10]


def test_every_element_has_its_offset() -> None:
    source = "x {{ outcome . http['status code'][0] }}"
    (read,) = reads(source)
    assert read.offset == source.index("outcome")
    assert [source[offset:][:4] for offset in read.offsets] == ["outc", "http", "'sta", "0] }"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ ctx[name] }}", {"ctx": True, "name": False}),
        ("{{ ctx.a[name].b }}", {"ctx.a": True, "name": False}),
        ("{{ ctx[1.5] }}", {"ctx": True}),
        ("{{ ctx['a' ~ b] }}", {"ctx": True, "b": False}),
        ("{{ ctx.a[1:] }}", {"ctx.a": True}),
        ("{{ ctx.a }}", {"ctx.a": False}),
        ("{{ ctx | tojson }}", {"ctx": False}),
    ],
)
def test_a_computed_key_widens_a_read(source: str, expected: dict[str, bool]) -> None:
    assert {".".join(map(str, read.path)): read.dynamic for read in reads(source)} == expected


@pytest.mark.parametrize(
    ("source", "guarded"),
    [
        ("{{ a }}", []),
        ("{{ a | default(1) }}", ["a"]),
        ("{{ a.b.c | d(b) }}", ["a.b.c"]),
        ("{{ (a.b | int) | default(1) }}", ["a.b"]),
        ("{{ a is defined }}", ["a"]),
        ("{{ a is undefined }}", ["a"]),
        ("{{ a is not defined }}", ["a"]),
        ("{{ a or b }}", ["a"]),
        ("{{ a.x or b.y or 'z' }}", ["a.x", "b.y"]),
        ("{{ a == 1 or b == 2 }}", []),
        ("{{ a and b }}", []),
        ("{{ a is defined and a.b == 1 }}", ["a", "a.b"]),
        ("{{ a.b is defined and a.c }}", ["a.b"]),
        ("{{ a.b and a.b.c == 1 }}", ["a.b.c"]),
        ("{{ a is not defined or a.b == 1 }}", ["a", "a.b"]),
        ("{{ a.x if a is defined else b }}", ["a.x", "a"]),
        ("{{ b if a is undefined else a.x }}", ["a", "a.x"]),
        ("{{ a.b if a else c }}", ["a.b"]),
        ("{{ 'k' in a and a.k == 1 }}", ["a.k"]),
        ("{{ a.kind == 'x' and a.kind.y }}", ["a.kind.y"]),
        ("{{ a != 1 and a.b }}", []),
        ("{{ a is string and a.x }}", ["a.x"]),
        ("{% if a is defined %}{{ a.b }}{% endif %}{{ a.b }}", ["a", "a.b"]),
        ("{% if a is not defined %}{{ a }}{% else %}{{ a.b }}{% endif %}", ["a", "a.b"]),
        ("{% if a %}{{ a.b }}{% elif c %}{{ a.b }}{{ c.d }}{% endif %}", ["a.b", "c.d"]),
        ("{{ a.get('k') }}", ["a.k"]),
        ("{{ (a or b).c }}", ["a"]),
        ("{{ [a or b, c] }}", ["a"]),
        ("{{ not (a is undefined) and a.b }}", ["a", "a.b"]),
    ],
)
def test_where_a_missing_value_is_expected(source: str, guarded: list[str]) -> None:
    assert [".".join(map(str, read.path)) for read in reads(source) if read.guarded] == guarded


def test_a_value_whose_method_is_called_says_so() -> None:
    assert [(read.path, read.called) for read in reads("{{ a.b.split(c) }}")] == [(("a", "b"), True), (("c",), False)]


@pytest.mark.parametrize(
    ("source", "constant"),
    [
        ("plain", True),
        ("{{ 1 == 1 }}", True),
        ("{{ 'a' | upper }}", True),
        ("{{ a }}", False),
        ("{{ now() }}", False),
        ("{{ gen_uuid() }}", False),
        ("{{ done('x') }}", False),
        ("{{ range(3) }}", True),
        ("{% for i in [1] %}{{ i }}{{ loop.index }}{% endfor %}", True),
    ],
)
def test_constant(source: str, constant: bool) -> None:
    assert compile_template(source).constant is constant


def test_offsets_beyond_windows_line_ends() -> None:
    source = "a\r\nb\r\n{{ first.key }}\r\n{{ second | uper }}\r\n{{ third + nope }}"
    template = compile_template(source)
    assert [read.offset for read in template.reads] == [
        source.index(name) for name in ("first", "second", "third", "nope")
    ]
    assert template.reads[0].offsets[1] == source.index("key")
    assert template.problems[0].offset == source.index("uper")
