"""Build drawings for tests: from the YAML of a workflow, and at random."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from noetl.dsl.draw import Link, Picture, Vertex, picture
from noetl.dsl.draw.model.picture import LoopMark
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: sample, path: tests/sample}\n"


def pictured(workflow: str, before: str = "") -> Picture:
    """Return the drawing of a workflow; `before` holds other root sections."""
    return picture(normalize(parse(f"{HEAD}{before}workflow:\n{workflow}")))


# Anything may be called anything: quotes, brackets, line breaks, wide and invisible characters.
texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
_words = st.sampled_from(
    [
        "", "a", "http", "ctx.rows > 0 and outcome.status == 'ok'", "event.name == 'step.failed'", 'say "so"', "<b>&amp;</b>",
        "back\\slash", "{{ x }}", "a|b|c", "#35;", "`tick`", "line\nbreak", "tab\tstop", "\x1b[31mred", "\x00", "\x7f",
        "日本語", "e\u0301", "\u202eright to left", "\u2028", "long " * 30, "]]>", "n0 --> n1", "\\n",
    ]
)  # fmt: skip
_loops = st.none() | st.builds(LoopMark, _words, _words, st.sampled_from(["sequential", "parallel"]), _words)


_some_words = st.lists(_words, max_size=2).map(tuple)
_MOST = 6
_vertices = st.builds(
    Vertex,
    name=texts,
    tasks=st.lists(st.tuples(_words, _words), max_size=5).map(tuple),
    desc=_words,
    gate=st.none() | _some_words,
    loop=_loops,
    join=st.sampled_from(["", "all", "any", "3"]),
    mode=st.sampled_from(["exclusive", "inclusive"]),
    undoes=_some_words,
    known=st.booleans(),
    reachable=st.booleans(),
)
_number = st.integers(0, _MOST - 1)
_links = st.builds(
    Link,
    _number,
    _number,
    kind=st.sampled_from(["arc", "arc", "arc", "compensate"]),
    when=_words,
    label=_words,
    outcome=st.sampled_from(["success", "failure", "any"]),
    args=_some_words,
    sets=_some_words,
)


def _picture(
    name: str, path: str, vertices: list[Vertex], links: list[Link], entry: int | None, final: int | None
) -> Picture:
    """Build a drawing; wrap numbers that are too large for it."""
    count = len(vertices)
    inside = tuple(replace(link, source=link.source % count, target=link.target % count) for link in links)
    first, last = (None if number is None else number % count for number in (entry, final))
    return Picture(name, path, tuple(vertices), inside, first, last)


_PICTURES = st.builds(
    _picture,
    texts,
    texts,
    st.lists(_vertices, min_size=1, max_size=_MOST, unique_by=lambda vertex: vertex.name),
    st.lists(_links, max_size=2 * _MOST),
    st.none() | _number,
    st.none() | _number,
)


def pictures() -> st.SearchStrategy[Picture]:
    """Drawings of all sorts, including those that no playbook produces."""
    return _PICTURES
