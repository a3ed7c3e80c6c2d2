"""Pictures as Mermaid: every line is valid Mermaid, whatever the names are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.draw import Picture, Vertex, draw_mermaid
from noetl.dsl.draw.model.captions import caption, counted, pipeline, shortened, wrapped
from tests.unit.dsl.draw.samples import pictured, pictures, texts

LABEL = r'"(?P<label>(?:[^"#&<>`{}\\\n]|#\w+;|<b>|</b>|<br/>)*)"'
NODE = re.compile(
    rf"  (?P<id>n\d+)(?:\[{LABEL}\]|\(\[{LABEL.replace('label', 'round')}\]\)|\[\[{LABEL.replace('label', 'twice')}\]\]|\{{\{{{LABEL.replace('label', 'six')}\}}\}})"
)
LINK = re.compile(rf"  (?P<from>n\d+) (?:-->|-\.->)(?:\|{LABEL}\|)? (?P<to>n\d+)")
STYLE = re.compile(r"  (?:classDef \w+ [\w:,#. -]+|class n\d+(?:,n\d+)* \w+|linkStyle \d+(?:,\d+)* stroke:#\w{6})")


def check(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the nodes and links of a flow chart; fail on invalid Mermaid."""
    first, *lines = text.splitlines()
    assert first == "flowchart TD"
    nodes: list[str] = []
    links: list[tuple[str, str]] = []
    for line in lines:
        if match := NODE.fullmatch(line):
            nodes.append(match["id"])
        elif match := LINK.fullmatch(line):
            links.append((match["from"], match["to"]))
        else:
            assert STYLE.fullmatch(line), line
    assert {end for link in links for end in link} <= set(nodes)
    return nodes, links


@given(pictures())
def test_any_picture_is_a_flow_chart_with_all_its_steps_and_links(picture: Picture) -> None:
    nodes, links = check(draw_mermaid(picture))
    assert nodes == [f"n{number}" for number in range(len(picture.vertices))]
    assert links == [(f"n{link.source}", f"n{link.target}") for link in picture.links]


def test_the_checker_refuses_what_mermaid_would() -> None:
    for line in ('  n0["a"b"]', '  n0["a]', "  n0[a{b}]", '  n0 --> |"x"| n0', "  n0 => n0"):
        assert not any(form.fullmatch(line) for form in (NODE, LINK, STYLE)), line


def test_a_flow_chart() -> None:
    picture = pictured(
        """
  - {step: a, next: {arcs: [{step: b, when: '{{ ctx.name == "x" }}'}, {step: c, when: "{{ event.name == 'step.failed' }}"}]}}
  - {step: b, tool: {kind: http}, loop: {in: [1], iterator: x}}
  - {step: c, tool: {kind: http}, spec: {policy: {admit: {rules: [{when: true, then: {allow: true}}]}}}}
"""
    )
    assert draw_mermaid(picture) == (
        "flowchart TD\n"
        '  n0(["<b>a</b><br/>routing"])\n'
        '  n1[["<b>b</b><br/>http<br/>sequential loop"]]\n'
        '  n2{{"<b>c</b><br/>http<br/>gate"}}\n'
        '  n0 -->|"ctx.name == #quot;x#quot;"| n1\n'
        '  n0 -.->|"on failure"| n2\n'
        "  linkStyle 1 stroke:#c2410c\n"
        "  classDef entry stroke-width:3px\n"
        "  class n0 entry\n"
    )


def test_long_pipelines_are_put_short() -> None:
    def said(*kinds: str) -> str:
        return pipeline(Vertex("a", tasks=tuple(("x", kind) for kind in kinds)))

    assert said("http") == "http"
    assert said("http", "http", "python") == "http ×2 → python"
    assert said("a", "b", "c", "d") == "a → b → c → d"
    assert said("a", "b", "c", "d", "e") == "a → b → c → … e"


def test_captions_say_what_a_step_is() -> None:
    assert list(caption(Vertex("a", known=False))) == ["not in the workflow"]
    assert list(caption(Vertex("a", gate=(), join="2"))) == ["routing", "gate", "join 2"]


def test_counts_have_their_plural() -> None:
    assert [counted(number, "step") for number in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]


@given(texts, st.integers(4, 20), st.integers(1, 4))
def test_words_are_wrapped_within_bounds(text: str, longest: int, most: int) -> None:
    lines = wrapped(text, longest, most)
    assert len(lines) <= most
    assert all(len(line) <= longest for line in lines)
    assert len(shortened(text, longest)) <= longest


def test_wrapping_breaks_between_words_and_tells_what_it_leaves_out() -> None:
    assert wrapped("one two three", 7) == ("one two", "three")
    assert wrapped("one two three four", 5, 2) == ("one", "two …")
