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
_loops = st.none() | st.builds(LoopMark, texts, texts, st.sampled_from(["sequential", "parallel"]), texts)


@st.composite
def pictures(draw: st.DrawFn, most: int = 6) -> Picture:
    count = draw(st.integers(1, most))
    names = draw(st.lists(texts, min_size=count, max_size=count, unique=True))
    vertices = tuple(
        draw(
            st.builds(
                Vertex,
                name=st.just(name),
                tasks=st.lists(st.tuples(texts, texts), max_size=5).map(tuple),
                desc=texts,
                gate=st.none() | st.lists(texts, max_size=2).map(tuple),
                loop=_loops,
                join=st.sampled_from(["", "all", "any", "3"]),
                mode=st.sampled_from(["exclusive", "inclusive"]),
                undoes=st.lists(texts, max_size=2).map(tuple),
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
        when=texts,
        label=texts,
        outcome=st.sampled_from(["success", "failure", "any"]),
        args=st.lists(texts, max_size=2).map(tuple),
        sets=st.lists(texts, max_size=2).map(tuple),
    )
    links = tuple(draw(st.lists(link, max_size=2 * most)))
    return Picture(draw(texts), draw(texts), vertices, links, draw(st.none() | number), draw(st.none() | number))
