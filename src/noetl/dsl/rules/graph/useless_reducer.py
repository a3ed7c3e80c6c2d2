"""NOE411 reports a reducer on a sequential loop."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import key_at

GOOD = example("""\
workload: { orders: [3, 4] }
workflow:
  - step: add_up
    loop:
      in: "{{ workload.orders }}"
      iterator: order
      spec:
        mode: parallel
        reduce: { ctx.total: sum }
    tool:
      - count:
          kind: noop
          set: { ctx.total: "{{ iter.order }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        if step.loop is None or "reduce" not in step.loop.spec or step.loop.mode != "sequential":
            continue
        if "max_in_flight" in step.loop.spec or subject.loop_means(step.loop, "mode"):
            continue  # NOE126 reports the limit, and the loop should probably be parallel
        place = key_at(step.loop.at, "spec", "reduce")
        if place is not None:
            yield at(
                place,
                f"The loop of step '{step.name}' is sequential: each item reads the writes of the previous one, so there is "
                "nothing to reduce.",
                "Remove `reduce` and build the value up in `ctx`, or run the loop with `mode: parallel`.",
            )


RULE = Rule(
    code="NOE411",
    name="useless-reducer",
    severity="hint",
    summary="A sequential loop declares a reducer.",
    why=(
        "Reducers combine writes of items that run at the same time. In a sequential loop, every item reads what the previous "
        "one wrote; the reducer is probably left over from another `mode`."
    ),
    fix="Remove `reduce`, or set `mode: parallel`.",
    bad=GOOD.replace("mode: parallel", "mode: sequential"),
    good=GOOD,
    check=check,
)
