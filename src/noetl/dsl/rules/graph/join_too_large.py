"""NOE404 reports a join that waits for more branches than a fork can send."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Step

GOOD = example("""\
workflow:
  - step: ask_all
    next: [north, south]
  - step: north
    tool: { kind: http, url: "https://north.example.org/quote" }
    next: decide
  - step: south
    tool: { kind: http, url: "https://south.example.org/quote" }
    next: decide
  - step: decide
    spec: { join: 2 }
    tool: { kind: noop }
""")


_MOST_BRANCHES = 100_000  # arcs of forks to follow: those of each fork, for each join


def check(subject: CheckContext) -> Iterator[Finding]:
    net = subject.net
    if not subject.net_is_whole or net.live() != (1 << len(net.steps)) - 1:
        return  # NOE401 reports unreachable steps, and the join may wait for them
    joins = [(number, step, step.join) for number, step in enumerate(net.steps) if _waits_for_many(step)]
    forks = [n for n, step in enumerate(net.steps) if step.router is not None and step.router.mode == "inclusive"]
    branches = sum(len(net.out[number]) for number in forks)
    for number, step, wanted in joins[: _MOST_BRANCHES // max(1, branches)]:
        most = _most_tokens(subject, number, forks)
        place = step.spec["join"].at
        if most is not None and most < wanted and place is not None:
            yield at(place, *_texts(step, wanted, most))


def _waits_for_many(step: Step) -> bool:
    return isinstance(step.join, int) and not isinstance(step.join, bool) and step.join > 1


def _most_tokens(subject: CheckContext, target: int, forks: list[int]) -> int | None:
    """Return how many tokens of a fork can meet at a step; None: unbounded."""
    net = subject.net
    most = 1
    for number in forks:
        if not net.reaches(number, target):
            continue
        step = net.steps[number]
        if net.reaches(number, number):
            return None
        most += max(0, max(_branches(subject, step, target, ending) for ending in (0, 1, 2)) - 1)
    return most


def _branches(subject: CheckContext, step: Step, target: int, which: int) -> int:
    """Count the arcs that one ending may take together towards the target."""
    endings = subject.flow.endings(step)
    if which >= len(endings):
        return 0
    net = subject.net
    branches = 0
    for arc in subject.flow.ways(step, endings[which]).possible:
        follower = net.index.get(arc.step)
        branches += follower is None or follower == target or net.reaches(follower, target)
    return branches


def _texts(step: Step, wanted: int, most: int) -> tuple[str, str]:
    if most == 1:
        return (
            f"Step '{step.name}' waits for {wanted} branches, but no fork leads to it: only one token can arrive at a time.",
            "Use `next.spec.mode: inclusive` on a router before it, or remove `join`.",
        )
    return (
        f"Step '{step.name}' waits for {wanted} branches, but at most {most} can arrive.",
        f"Write `join: {most}` or less, or `join: all` to wait for every branch that can still arrive.",
    )


RULE = Rule(
    code="NOE404",
    name="join-too-large",
    severity="error",
    summary="A step waits for more branches than can arrive.",
    why=(
        "`join: n` runs the step when n branches of one fork have arrived. Only a router that takes several arcs at once "
        "makes a fork; the arcs of an exclusive router are alternatives. If fewer than n can arrive, the step always fails."
    ),
    fix="Lower the number, use `join: all`, or make the router before it inclusive.",
    bad=GOOD.replace("join: 2", "join: 3"),
    good=GOOD,
    check=check,
)
