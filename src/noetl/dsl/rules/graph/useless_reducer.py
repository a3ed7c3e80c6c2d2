"""NOE411 reports a reducer on a loop whose items run one after another."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.graph.places import key
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
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
"""


def check(subject: Subject) -> Iterator[Found]:
    for step in subject.playbook.workflow:
        if step.loop is None or "reduce" not in step.loop.spec or step.loop.mode != "sequential":
            continue
        if "max_in_flight" in step.loop.spec:
            continue  # a bound without effect is told already, and the loop was most likely meant to be parallel
        place = key(step.loop.at, "spec", "reduce")
        if place is not None:
            yield at(
                place,
                f"The loop of step '{step.name}' is sequential: each item sees the writes of the one before, so there is "
                "nothing to reduce.",
                "Remove `reduce` and build the value up in `ctx`, or run the loop with `mode: parallel`.",
            )


RULE = Rule(
    code="NOE411",
    name="useless-reducer",
    group="graph",
    severity="hint",
    summary="A sequential loop declares a reducer.",
    why=(
        "Reducers combine writes of items that run at the same time. In a sequential loop every item sees what the last one "
        "wrote, and the reducer is most likely left over from another `mode`."
    ),
    fix="Remove `reduce`, or set `mode: parallel`.",
    bad=GOOD.replace("mode: parallel", "mode: sequential"),
    good=GOOD,
    check=check,
)
