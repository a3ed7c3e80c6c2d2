"""NOE412 reports a `ctx` key that two branches of a fork both write."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.flow import Flow, Write, writes
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Arc, Step

GOOD = example("""\
workflow:
  - step: split
    next: [north, south]
  - step: north
    tool: { kind: http, url: "https://north.example.org/price" }
    set: { ctx.north_price: "{{ north.data.price }}" }
    next: compare
  - step: south
    tool: { kind: http, url: "https://south.example.org/price" }
    set: { ctx.south_price: "{{ south.data.price }}" }
    next: compare
  - step: compare
    tool: { kind: noop }
""")
BAD = GOOD.replace("ctx.north_price", "ctx.price").replace("ctx.south_price", "ctx.price")


_MOST_VISITS = 300_000  # writing steps to look at, for each arc of a fork


def check(subject: CheckContext) -> Iterator[Finding]:
    if not subject.net_is_whole:
        return
    forks = [
        step for step in subject.net.steps if len(step.arcs) > 1 and step.router and step.router.mode == "inclusive"
    ]
    if not forks:
        return
    by_step = {step.name: own for step in subject.net.steps if (own := tuple(writes(step)))}
    reported: set[int] = set()
    left = _MOST_VISITS
    for fork in forks:
        arcs = subject.flow.ways(fork, subject.flow.success(fork)).certain
        left -= len(arcs) * (1 + len(by_step))
        if len(arcs) > 1 and left > 0:
            for first, second in _clashes(subject, fork, arcs, by_step):
                if second.assign.at is not None and id(second.assign) not in reported:
                    reported.add(id(second.assign))
                    yield at(second.assign.at, *_texts(fork, first, second))


def _clashes(
    subject: CheckContext, fork: Step, arcs: tuple[Arc, ...], by_step: dict[str, tuple[Write, ...]]
) -> Iterator[tuple[Write, Write]]:
    """Yield two writes of different branches, for every key that may differ."""
    first: dict[str, tuple[int, Write]] = {}
    reported: set[str] = set()
    of_arcs: dict[int, list[Write]] = {}
    for write in by_step.get(fork.name, ()):
        of_arcs.setdefault(id(write.arc), []).append(write)
    for number, (arc, region) in enumerate(zip(arcs, _regions(subject, arcs), strict=True)):
        own = of_arcs.get(id(arc), ())
        for write in (*own, *(w for step in subject.net.members(region) for w in by_step.get(step.name, ()))):
            name = write.assign.key
            owner, before = first.setdefault(name, (number, write))
            if owner != number and name not in reported and not _is_same(subject.flow, before, write):
                reported.add(name)
                yield before, write


def _regions(subject: CheckContext, arcs: tuple[Arc, ...]) -> list[int]:
    """Return, for each arc, the steps that only its branch can reach, as bit sets."""
    net = subject.net
    reached = [1 << n | net.reach[n] if (n := net.index.get(arc.step)) is not None else 0 for arc in arcs]
    once = twice = 0
    for bits in reached:
        twice |= once & bits
        once |= bits
    return [bits & ~twice for bits in reached]


def _is_same(flow: Flow, one: Write, other: Write) -> bool:
    """Return whether two writes always write the same value."""
    if one.assign.value.data != other.assign.value.data:
        return False
    template = flow.template(one.assign.value)
    return template is None or template.constant or all(read.path[0] == "workload" for read in template.reads)


def _texts(fork: Step, first: Write, second: Write) -> tuple[str, str]:
    key = second.assign.key
    where = "on two of its arcs" if first.step is second.step else f"in '{first.step.name}' and in '{second.step.name}'"
    return (
        f"Two branches that '{fork.name}' starts at the same time both write `ctx.{key}`, {where}; the last write wins.",
        f"Write a different key in each branch instead of `ctx.{key}`, and combine the values where the branches join.",
    )


RULE = Rule(
    code="NOE412",
    name="branch-write",
    severity="warning",
    summary="Branches of one fork write the same `ctx` key before they join.",
    why=(
        "Branches of a fork run at the same time, so the order of the writes is random: the result differs from run to run "
        "(a race)."
    ),
    fix="Use a different key in each branch, or write the key in the step where the branches join.",
    bad=BAD,
    good=GOOD,
    check=check,
)
