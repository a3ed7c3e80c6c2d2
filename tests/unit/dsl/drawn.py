"""Makes pictures for the tests of drawings: from the YAML of a workflow, and at random."""

from __future__ import annotations

from hypothesis import strategies as st

from noetl.dsl.draw import Link, Picture, Vertex, picture
from noetl.dsl.draw.picture import LoopMark
from noetl.dsl.normalize import normalize
from noetl.dsl.parse import parse

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: sample, path: tests/sample}\n"


def pictured(workflow: str, before: str = "") -> Picture:
    """Give the picture of a workflow; `before` holds other root sections."""
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


@st.composite
def pictures(draw: st.DrawFn, most: int = 6) -> Picture:
    count = draw(st.integers(1, most))
    names = draw(st.lists(texts, min_size=count, max_size=count, unique=True))
    vertices = tuple(
        draw(
            st.builds(
                Vertex,
                name=st.just(name),
                tasks=st.lists(st.tuples(_words, _words), max_size=5).map(tuple),
                desc=_words,
                gate=st.none() | st.lists(_words, max_size=2).map(tuple),
                loop=_loops,
                join=st.sampled_from(["", "all", "any", "3"]),
                mode=st.sampled_from(["exclusive", "inclusive"]),
                undoes=st.lists(_words, max_size=2).map(tuple),
                known=st.booleans(),
                reachable=st.booleans(),
            )
        )
        for name in names
    )
    number = st.integers(0, count - 1)
    link = st.builds(
        Link,
        number,
        number,
        kind=st.sampled_from(["arc", "arc", "arc", "compensate"]),
        when=_words,
        label=_words,
        outcome=st.sampled_from(["success", "failure", "any"]),
        args=st.lists(_words, max_size=2).map(tuple),
        sets=st.lists(_words, max_size=2).map(tuple),
    )
    links = tuple(draw(st.lists(link, max_size=2 * most)))
    return Picture(draw(texts), draw(texts), vertices, links, draw(st.none() | number), draw(st.none() | number))
