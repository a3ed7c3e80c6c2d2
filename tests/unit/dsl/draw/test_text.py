"""Pictures as text: what a person reads in a terminal."""

from __future__ import annotations

from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.draw import Picture, draw_text
from noetl.dsl.draw.model.captions import cells
from tests.unit.dsl.draw.samples import pictured, pictures

WHOLE = """\
sample · tests/sample
8 steps, 8 arcs, 1 cycle

▶ begin        routing only
  │ all of them at once
  ├─→ left
  └─→ right

  left         http → python, parallel loop, 4 at once
  │ for each page in workload.pages
  ├─→ meet     on success
  └─→ alarm    [failed] on failure

  right        postgres, undone by forget
  └─→ meet

  meet         noop, gate, join all
  │ admitted when ctx.ready or nothing else matches
  │ the first that matches
  ├─↺ begin    when ctx.again
  ├─→ report   when ctx.rows > 0
  └─→ nowhere  on success

● alarm        http
● report       noop
↶ forget       postgres, undoes right
✗ lost         noop
? nowhere

▶ entry   ● end of a branch   ↶ undoes another step   ✗ no token can come here   ? not in the workflow   ↺ leads back
"""
WORKFLOW = """
  - {step: begin, next: [left, right]}
  - step: left
    loop: {in: "{{ workload.pages }}", iterator: page, spec: {mode: parallel, max_in_flight: 4}}
    tool: [{kind: http}, {kind: python}]
    next:
      arcs:
        - {step: meet}
        - {step: alarm, when: "{{ event.name == 'step.failed' }}", label: failed}
  - {step: right, tool: {kind: postgres}, next: meet, compensate: forget}
  - step: meet
    spec: {policy: {admit: {rules: [{when: "{{ ctx.ready }}", then: {allow: true}}, {else: {then: {allow: true}}}]}}}
    tool: {kind: noop}
    next:
      arcs:
        - {step: begin, when: "{{ ctx.again }}"}
        - {step: report, when: "{{ ctx.rows > 0 }}"}
        - {step: nowhere}
  - {step: alarm, tool: {kind: http}}
  - {step: report, tool: {kind: noop}}
  - {step: forget, tool: {kind: postgres}}
  - {step: lost, tool: {kind: noop}}
"""


def test_a_whole_picture() -> None:
    assert draw_text(pictured(WORKFLOW)) == WHOLE


def test_a_single_step_needs_few_words() -> None:
    assert draw_text(pictured("  - {step: a, tool: {kind: noop}}\n")) == (
        "sample · tests/sample\n1 step, 0 arcs\n\n▶ a      noop\n\n▶ entry\n"
    )


def test_the_final_step_is_marked() -> None:
    text = draw_text(pictured("  - {step: a}\n  - {step: b}\n", "executor: {spec: {final_step: b}}\n"))
    assert "■ b" in text
    assert "■ runs once at the end" in text


def test_a_closed_gate_is_told() -> None:
    text = draw_text(
        pictured("  - {step: a, spec: {policy: {admit: {rules: [{when: true, then: {allow: false}}]}}}}\n")
    )
    assert "admitted when never" in text


def test_lines_are_cut_to_the_width() -> None:
    narrow = draw_text(pictured(WORKFLOW), width=40)
    assert all(cells(line) <= 40 for line in narrow.splitlines())
    assert "  │ admitted when ctx.ready or nothing …" in narrow.splitlines()
    assert "…" not in draw_text(pictured(WORKFLOW))


def test_wide_names_keep_the_columns() -> None:
    lines = draw_text(
        pictured("  - {step: 日本, tool: {kind: noop}}\n  - {step: abcd, tool: {kind: noop}}\n")
    ).splitlines()
    found = [line for line in lines if line.endswith("noop")]
    assert [cells(line) for line in found] == [cells(found[0])] * 2


@given(pictures(), st.none() | st.integers(10, 100))
def test_any_picture_can_be_drawn_and_nothing_speaks_to_the_terminal(picture: Picture, width: int | None) -> None:
    text = draw_text(picture, width)
    assert not {category(char) for char in text.replace("\n", "")} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    if width is not None:
        assert all(cells(line) <= width for line in text.splitlines())
