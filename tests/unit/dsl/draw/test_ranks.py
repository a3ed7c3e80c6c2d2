"""Laws of the order of a picture, on random graphs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.draw.model.ranks import Pair, in_order

GRAPHS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30),
        st.none() | st.integers(0, count - 1),
        st.none() | st.integers(0, count - 1),
    )
)


@given(GRAPHS)
def test_every_link_that_does_not_lead_back_goes_down_and_onwards(
    graph: tuple[int, list[Pair], int | None, int | None],
) -> None:
    count, links, first, last = graph
    ordered = in_order(count, links, first, last)
    place = {number: index for index, number in enumerate(ordered.reading)}
    assert sorted(place) == list(range(count))
    for number, (source, target) in enumerate(links):
        if number in ordered.back:
            assert ordered.level[target] <= ordered.level[source]
        else:
            assert ordered.level[source] < ordered.level[target]
            assert place[source] < place[target]


@given(GRAPHS)
def test_levels_hold_every_step_once_in_reading_order(graph: tuple[int, list[Pair], int | None, int | None]) -> None:
    count, links, first, last = graph
    ordered = in_order(count, links, first, last)
    assert sorted(number for row in ordered.levels for number in row) == list(range(count))
    for level, row in enumerate(ordered.levels):
        assert all(ordered.level[number] == level for number in row)
        assert list(row) == sorted(row, key=ordered.reading.index)


@given(GRAPHS)
def test_without_a_cycle_nothing_leads_back(graph: tuple[int, list[Pair], int | None, int | None]) -> None:
    count, links, first, _ = graph
    downwards = [(source, target) for source, target in links if source < target]
    assert in_order(count, downwards, first).back == frozenset()


def test_file_order_is_kept_where_the_flow_allows_it() -> None:
    assert in_order(4, [(0, 2), (2, 1), (1, 3)], 0).reading == (0, 2, 1, 3)
    assert in_order(4, [], 0).reading == (0, 1, 2, 3)


def test_the_entry_decides_where_a_cycle_is_cut() -> None:
    ring = [(0, 1), (1, 2), (2, 0)]
    assert in_order(3, ring, 0).back == {2}
    assert in_order(3, ring, 1).back == {0}


def test_the_last_step_stands_below_everything() -> None:
    assert in_order(3, [(0, 1)], 0, last=2).level == (0, 1, 2)
    assert in_order(3, [(0, 1), (0, 2)], 0, last=2).level == (0, 1, 1)
    assert in_order(1, [], None, last=0).level == (0,)


def test_a_step_without_a_way_in_stands_just_above_what_it_leads_to() -> None:
    assert in_order(4, [(0, 1), (1, 2), (3, 2)], 0).level == (0, 1, 2, 1)


def test_a_very_long_chain_is_no_trouble() -> None:
    count = 20_000
    ordered = in_order(count, [(number, number + 1) for number in range(count - 1)], 0)
    assert ordered.level[-1] == count - 1
