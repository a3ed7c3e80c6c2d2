"""Pictures as SVG: well-formed, accessible, deterministic, with any names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given, settings

from noetl.dsl.draw import Picture, draw_svg
from tests.unit.dsl.draw.samples import pictured, pictures

NS = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def read(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(draw_svg(picture))


def titles(root: ElementTree.Element) -> list[str]:
    return [found.text or "" for group in root.iter(f"{NS}g") for found in group.findall(f"{NS}title")]


@given(pictures())
@settings(max_examples=60)
def test_any_picture_is_well_formed_and_every_part_has_a_title(picture: Picture) -> None:
    root = read(picture)
    assert root.tag == f"{NS}svg"
    assert root.find(f"{NS}title") is not None
    drawn = [group for group in root.iter(f"{NS}g") if "transform" not in group.attrib]
    assert sum(group.attrib["class"].startswith("step") for group in drawn) == len(picture.vertices)
    assert sum(group.attrib["class"] == "way" for group in drawn) == len(picture.links)
    assert all(group.find(f"{NS}title") is not None for group in drawn)


@given(pictures())
@settings(max_examples=30)
def test_the_same_picture_gives_the_same_text(picture: Picture) -> None:
    again = Picture(picture.name, picture.path, picture.vertices, picture.links, picture.entry, picture.final)
    assert draw_svg(picture) == draw_svg(again)


@given(pictures())
@settings(max_examples=30)
def test_every_coordinate_is_a_finite_number(picture: Picture) -> None:
    for element in read(picture).iter():
        for name in ("x", "y", "width", "height", "cx", "cy", "r"):
            if name in element.attrib:
                assert NUMBER.fullmatch(element.attrib[name]), element.attrib
        assert not re.search("nan|inf", element.attrib.get("d", ""))


def test_names_and_conditions_are_escaped_and_complete_in_titles() -> None:
    picture = pictured(
        """
  - step: "<a&b>"
    desc: 'says "so"'
    tool: {get: {kind: http}}
    next: {arcs: [{step: b, when: "{{ ctx.a < 3 and ctx.b > 4 and ctx.c == 'a very long text that no label holds' }}"}]}
  - {step: b}
"""
    )
    text = draw_svg(picture)
    assert "<a&b>" not in text
    root = ElementTree.fromstring(text)
    said = titles(root)
    assert '<a&b> (entry)\nsays "so"\nget: http' in said
    assert "<a&b> → b\nwhen ctx.a < 3 and ctx.b > 4 and ctx.c == 'a very long text that no label holds'" in said
    assert "<a&b>" in [found.text for found in root.iter(f"{NS}text")]


def classes(root: ElementTree.Element) -> set[str]:
    return {name for element in root.iter() for name in element.attrib.get("class", "").split()}


def test_marks_are_drawn_and_explained() -> None:
    picture = pictured(
        """
  - {step: a, next: [b, c], compensate: undo}
  - step: b
    loop: {in: [1], iterator: x, spec: {mode: parallel}}
    tool: {kind: http}
    next:
      arcs:
        - {step: a, when: "{{ ctx.again }}"}
        - {step: d, when: "{{ event.name == 'step.failed' }}"}
        - {step: nowhere}
  - {step: c, tool: {kind: http}, next: d}
  - {step: d, tool: {kind: http}}
  - {step: undo, tool: {kind: http}}
  - {step: lost, tool: {kind: http}}
"""
    )
    root = read(picture)
    assert {"entry", "unknown", "unreachable", "stack", "bar", "back", "fail", "undo", "token"} <= classes(root)
    words = " ".join(found.text or "" for found in root.iter(f"{NS}text"))
    for said in (
        "not in the workflow",
        "leads back",
        "after a failure",
        "undoes a",
        "join all",
        "the first that matches",
    ):
        assert said in words, said


def test_what_is_not_there_is_not_explained() -> None:
    root = read(pictured("  - {step: a, tool: {kind: noop}, next: b}\n  - {step: b, tool: {kind: noop}}\n"))
    words = [found.text for found in root.iter(f"{NS}text")]
    assert words == ["sample", "tests/sample · 2 steps, 1 arc", "a", "noop", "b", "noop"]


def test_success_beside_failure_needs_no_numbers() -> None:
    router = "[{step: b}, {step: c, when: \"{{ event.name == 'step.failed' }}\"}]"
    root = read(pictured(f"  - {{step: a, next: {{arcs: {router}}}}}\n  - {{step: b}}\n  - {{step: c}}\n"))
    words = [found.text for found in root.iter(f"{NS}text")]
    assert "on failure" in words
    assert not {"1", "2", "on success"} & set(words)


def test_a_way_that_many_links_share_is_drawn_once() -> None:
    failing = "{arcs: [{step: s%d}, {step: alarm, when: \"{{ event.name == 'step.failed' }}\"}]}"
    chain = "".join(f"  - {{step: s{number}, next: {failing % (number + 1)}}}\n" for number in range(6))
    root = read(pictured(f"{chain}  - {{step: s6, next: alarm}}\n  - {{step: alarm}}\n"))
    rails = [group for group in root.iter(f"{NS}g") if group.attrib.get("class") == "rail"]
    assert [group.findtext(f"{NS}title") for group in rails] == ["to alarm"]
    heads = [found for found in root.iter(f"{NS}path") if found.attrib["class"] == "head-fail"]
    assert len(heads) == 1


def test_it_has_colours_for_dark_surroundings() -> None:
    style = read(pictured("  - {step: a}\n")).find(f"{NS}style")
    assert style is not None
    assert "prefers-color-scheme:dark" in (style.text or "")
