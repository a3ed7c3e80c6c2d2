"""Random expressions and random data for the laws of templates."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ["a", "b", "ctx", "rows", "x"]
KEYS = ["k", "m", "items", "data"]
FILTERS = [
    "length", "string", "int", "upper", "list", "sort", "first", "last", "tojson", "sum", "unique", "join", "keys",
]  # fmt: skip
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "sequence", "odd", "true"]

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["", "s", "k", "m", "1", "x y"]), st.just(1.5)
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=6,
)
scopes = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)

_literals = st.one_of(
    st.integers(0, 4).map(str),
    st.sampled_from(["'s'", "'k'", "''", "true", "false", "none", "[]", "1.5", "[1, 2]", "{'k': 1}"]),
)
_paths = st.builds(
    lambda root, keys: root + "".join(keys),
    st.sampled_from(NAMES),
    st.lists(
        st.one_of(st.sampled_from([f".{key}" for key in KEYS]), st.sampled_from(["[0]", "['k']", "[-1]"])), max_size=3
    ),
)


_texts = st.sampled_from(["'text'", "'k'", "[1, 2]", "{'k': {'k': 1}}"])


def _compound(inner: st.SearchStrategy[str], paths: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "~", "**"]), inner),
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"]), inner
        ),
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} is {})".format, inner, st.sampled_from(TESTS)),
        st.builds("({} | {})".format, inner, st.sampled_from(FILTERS)),
        st.builds("({} | default({}))".format, inner, inner),
        st.builds("{}[{}]".format, paths, inner),
        st.builds("({}).k".format, inner),
        st.builds("{}.get('k', {})".format, paths, inner),
        st.builds("{}.{}()".format, paths, st.sampled_from(["upper", "split", "keys", "items", "strip"])),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'k': {}}}".format, inner),
        st.builds("{}[{}:]".format, paths, st.integers(-2, 2)),
    )


expressions = st.recursive(st.one_of(_literals, _paths), lambda inner: _compound(inner, _paths), max_leaves=8)
constants = st.recursive(_literals, lambda inner: _compound(inner, _texts), max_leaves=8).map("{{{{ {} }}}}".format)
lone = expressions.map("{{{{ {} }}}}".format)
texts = st.one_of(
    st.builds("a{{{{ {} }}}}b".format, expressions),
    st.builds(
        "{{% if {} %}}{{{{ {} }}}}{{% else %}}{{{{ {} }}}}{{% endif %}}".format, expressions, expressions, expressions
    ),
    st.builds(
        "{{% for a in {} %}}{{{{ {} }}}}{{% set b = {} %}}{{{{ b }}}}{{% endfor %}}".format,
        expressions,
        expressions,
        expressions,
    ),
    st.builds("{{% set x = {} %}}{{{{ x }}}}{{{{ {} }}}}".format, expressions, expressions),
    st.builds("{{% if {} %}}{{% set x = {} %}}{{% endif %}}{{{{ x }}}}".format, expressions, expressions),
)
templates = st.one_of(lone, texts)
# Text that is rarely a template: fragments of one, in any order.
garbage = st.lists(
    st.sampled_from(
        ["{{", "}}", "{%", "%}", "{#", "#}", " ", "a", ".k", "|", "upper", "(", ")", "[", "]", "'", '"', "=", "==", "if", "else",
         "endif", "for", "in", "endfor", "set", "not", "and", "is", "defined", "1", "-", "+", "~", ",", ":", "*", "**", "\\",
         "\n", "\r\n", "raw", "endraw", "include", "{", "}", "é", "&", "!", "?", "lambda", "macro", "do"]
    ),
    max_size=14,
).map("".join)  # fmt: skip
