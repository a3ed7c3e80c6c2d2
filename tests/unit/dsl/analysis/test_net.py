"""The net of a playbook: its edges, what reaches what, its cycles and its roots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.analysis.net import Net, build
from noetl.dsl.tree.playbook import Arc, Executor, Playbook, Router, Step, Value

NAMES = "abcdefgh"


def net(arcs: dict[str, str], **settings: str) -> Net:
    """Make a net whose steps are the keys, each with arcs to the letters of its value."""
    steps = tuple(Step(name, router=Router(tuple(map(Arc, targets)))) for name, targets in arcs.items())
    executor = Executor(spec={name: Value(value) for name, value in settings.items()})
    return build(Playbook("net", "tests/net", steps, executor=executor))


def names(found: Net, bits: int) -> str:
    return "".join(step.name for step in found.members(bits))


def test_a_chain_reaches_forward_only() -> None:
    found = net({"a": "b", "b": "c", "c": ""})
    assert [names(found, bits) for bits in found.reach] == ["bc", "c", ""]
    assert found.cycles() == ()


def test_a_step_reaches_itself_only_in_a_cycle() -> None:
    found = net({"a": "b", "b": "c", "c": "b", "d": "d"})
    assert [found.reaches(n, n) for n in range(4)] == [False, True, True, True]
    assert found.cycles() == ((1, 2), (3,))


def test_the_shortest_cycle_through_a_step_begins_and_ends_with_it() -> None:
    found = net({"a": "b", "b": "cd", "c": "d", "d": "ae", "e": "e"})
    assert found.cycle_of("a") == ("a", "b", "d", "a")
    assert found.cycle_of("c") == ("c", "d", "a", "b", "c")
    assert found.cycle_of("e") == ("e", "e")
    assert net({"a": "b", "b": ""}).cycle_of("a") == ("a",)


def test_cycles_that_share_a_step_are_one_group() -> None:
    assert net({"a": "bc", "b": "a", "c": "a"}).cycles() == ((0, 1, 2),)


def test_edges_are_known_from_both_ends() -> None:
    found = net({"a": "bc", "b": "c", "c": ""})
    assert [edge.target for edge in found.out[0]] == [1, 2]
    assert [edge.source for edge in found.into[2]] == [0, 1]


def test_an_arc_to_nowhere_is_left_out() -> None:
    found = net({"a": "bz", "b": ""})
    assert [(edge.source, edge.target) for edge in found.edges] == [(0, 1)]


def test_of_two_steps_with_one_name_the_first_counts() -> None:
    steps = (Step("a", router=Router((Arc("b"),))), Step("b"), Step("a"))
    found = build(Playbook("net", "tests/net", steps))
    assert [step.name for step in found.steps] == ["a", "b"]
    assert found.reaches(0, 1)


def test_the_entry_is_the_first_step_or_the_named_one() -> None:
    assert net({"a": "b", "b": ""}).entry == 0
    assert net({"a": "b", "b": ""}, entry_step="b").entry == 1
    assert net({"a": "b", "b": ""}, entry_step="z").entry is None


def test_tokens_come_to_what_lies_behind_the_entry_the_final_step_and_compensations() -> None:
    found = net({"a": "b", "b": "", "c": "d", "d": "", "e": ""}, final_step="c")
    assert names(found, found.live()) == "abcd"
    steps = (Step("a", compensate="undo"), Step("undo"), Step("lost"))
    undoing = build(Playbook("net", "tests/net", steps))
    assert names(undoing, undoing.live()) == "aundo"


def test_an_empty_workflow_is_an_empty_net() -> None:
    found = build(Playbook("net", "tests/net", ()))
    assert (found.steps, found.reach, found.live(), found.cycles()) == ((), (), 0, ())


def test_a_long_chain_needs_no_deep_recursion() -> None:
    steps = tuple(Step(f"s{n}", router=Router((Arc(f"s{n + 1}"),))) for n in range(5000))
    found = build(Playbook("net", "tests/net", steps))
    assert found.reaches(0, 4999)
    assert not found.reaches(4999, 0)


graphs = st.dictionaries(st.sampled_from(NAMES), st.text(st.sampled_from(NAMES), max_size=4), max_size=8)


def walked(arcs: dict[str, str], start: str) -> set[str]:
    """Follow arcs step by step: the slow and obvious way."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        for follower in arcs[pending.pop()]:
            if follower in arcs and follower not in seen:
                seen.add(follower)
                pending.append(follower)
    return seen


@given(graphs)
def test_reach_is_what_a_walk_finds(arcs: dict[str, str]) -> None:
    found = net(arcs)
    for number, step in enumerate(found.steps):
        assert set(names(found, found.reach[number])) == walked(arcs, step.name)


@given(graphs)
def test_two_steps_share_a_cycle_exactly_if_they_reach_each_other(arcs: dict[str, str]) -> None:
    found = net(arcs)
    group = {number: members for members in found.cycles() for number in members}
    for one in range(len(found.steps)):
        for other in range(len(found.steps)):
            both_ways = found.reaches(one, other) and found.reaches(other, one)
            assert (one in group and other in group[one]) == both_ways


@given(graphs)
def test_every_step_is_in_one_group_and_groups_come_after_their_followers(arcs: dict[str, str]) -> None:
    found = net(arcs)
    place = {number: at for at, members in enumerate(found.groups) for number in members}
    assert sorted(number for members in found.groups for number in members) == list(range(len(found.steps)))
    assert all(place[edge.target] <= place[edge.source] for edge in found.edges)
