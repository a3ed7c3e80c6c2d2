"""Laws of the layout behind SVG pictures: rows, cells, distances and lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.draw import Picture
from noetl.dsl.draw.layout.coordinates import Extent, isotonic, place
from noetl.dsl.draw.layout.layers import lay_out
from noetl.dsl.draw.layout.plan import make_plan
from noetl.dsl.draw.model.ranks import Pair, in_order
from tests.unit.dsl.draw.samples import pictured, pictures

GRAPHS = st.integers(1, 10).flatmap(
    lambda count: st.tuples(
        st.just(count), st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=24)
    )
)
EXACT = 1e-6


@given(GRAPHS)
def test_every_link_passes_one_cell_in_each_row_between_its_boxes(graph: tuple[int, list[Pair]]) -> None:
    count, links = graph
    layers = lay_out(in_order(count, links, 0), links, [None] * len(links))
    assert sorted(cell for row in layers.rows for cell in row) == list(range(len(layers.row)))
    assert all(layers.row[cell] == number for number, row in enumerate(layers.rows) for cell in row)
    for number, (source, target) in enumerate(links):
        if source == target:
            assert number not in layers.chains
            continue
        cells = layers.chains[number].cells
        assert {cells[0], cells[-1]} == {source, target}
        assert [layers.row[cell] for cell in cells] == list(range(layers.row[cells[0]], layers.row[cells[-1]] + 1))
        assert all(pair in layers.links for pair in pairwise(cells))


@given(GRAPHS)
def test_no_two_links_share_the_cell_of_their_label(graph: tuple[int, list[Pair]]) -> None:
    count, links = graph
    layers = lay_out(in_order(count, links, 0), links, [None] * len(links))
    labels = [chain.label for chain in layers.chains.values()]
    assert len(set(labels)) == len(labels)
    assert all(count <= label for label in labels)


def test_long_links_to_one_target_run_as_one_line() -> None:
    links = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)]
    ordered = in_order(4, links, 0)
    together = lay_out(ordered, links, [None] * 5)
    assert together.chains[3].cells[-2] == together.chains[4].cells[-2]
    apart = lay_out(ordered, links, [None, None, None, "failure", None])
    assert apart.chains[3].cells[-2] != apart.chains[4].cells[-2]


def crossings(rows: tuple[tuple[int, ...], ...], links: dict[Pair, float]) -> int:
    """Count crossings the slow and obvious way."""
    where = {cell: (number, at) for number, row in enumerate(rows) for at, cell in enumerate(row)}
    pairs = list(links)
    return sum(
        where[a][0] == where[c][0] and (where[a][1] - where[c][1]) * (where[b][1] - where[d][1]) < 0
        for index, (a, b) in enumerate(pairs)
        for c, d in pairs[index + 1 :]
    )


def test_links_are_uncrossed_where_they_can_be() -> None:
    links = [(0, 1), (0, 2), (0, 3), (1, 6), (2, 5), (3, 4)]
    layers = lay_out(in_order(7, links, 0), links, [None] * 6)
    assert crossings(layers.rows, layers.links) == 0


@given(GRAPHS, st.lists(st.tuples(st.floats(1, 90), st.floats(1, 90)), min_size=10, max_size=10))
def test_cells_of_a_row_never_overlap(graph: tuple[int, list[Pair]], sizes: list[tuple[float, float]]) -> None:
    count, links = graph
    layers = lay_out(in_order(count, links, 0), links, [None] * len(links))
    extents = [Extent(*sizes[cell]) if cell < count else Extent(3, 3) for cell in range(len(layers.row))]
    x = place(layers, extents, 20.0)
    assert min(at - extent.left for at, extent in zip(x, extents, strict=True)) == pytest.approx(0.0)
    for row in layers.rows:
        for left, right in pairwise(row):
            assert x[left] + extents[left].right + 20.0 <= x[right] - extents[right].left + EXACT


def test_a_chain_is_one_straight_line() -> None:
    links = [(0, 1), (1, 2), (2, 3)]
    layers = lay_out(in_order(4, links, 0), links, [None] * 3)
    x = place(layers, [Extent(10.0 + cell, 10.0 + cell) for cell in range(len(layers.row))], 20.0)
    assert x == pytest.approx([x[0]] * len(x))


WISHES = st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 10)), min_size=1, max_size=20)


@given(WISHES)
def test_isotonic_values_rise_and_keep_the_weighted_mean(wishes: list[tuple[float, float]]) -> None:
    found = isotonic(wishes)
    assert all(left <= right + EXACT for left, right in pairwise(found))
    total = sum(weight for _, weight in wishes)
    wished = sum(wish * weight for wish, weight in wishes) / total
    assert sum(value * weight for value, (_, weight) in zip(found, wishes, strict=True)) / total == pytest.approx(
        wished, abs=1e-6
    )


@given(st.lists(st.floats(-100, 100), max_size=10))
def test_isotonic_leaves_rising_values_alone(wishes: list[float]) -> None:
    assert isotonic([(wish, 1.0) for wish in sorted(wishes)]) == sorted(wishes)


@given(pictures())
def test_everything_stands_inside_the_picture(picture: Picture) -> None:
    plan = make_plan(picture)
    for number, box in enumerate(plan.boxes):
        assert plan.x[number] - box.width / 2 >= 0
        assert plan.x[number] + box.width / 2 <= plan.width
        assert plan.bottom(number) <= plan.height
    for (number, _), at in plan.ports.items():
        assert abs(at - plan.x[number]) <= plan.boxes[number].width / 2 + EXACT


@given(pictures())
def test_rows_follow_each_other_downwards(picture: Picture) -> None:
    plan = make_plan(picture)
    for number in range(len(plan.tops) - 1):
        assert plan.tops[number] + plan.heights[number] < plan.tops[number + 1]


def test_lines_that_meet_a_box_stand_apart_and_in_order() -> None:
    plan = make_plan(pictured("  - {step: a, next: [b, c, d]}\n  - {step: b}\n  - {step: c}\n  - {step: d}\n"))
    ports = sorted((plan.x[cell], at) for (box, cell), at in plan.ports.items() if box == 0)
    assert len(ports) == 3
    assert all(left[1] + 10 < right[1] for left, right in pairwise(ports))
