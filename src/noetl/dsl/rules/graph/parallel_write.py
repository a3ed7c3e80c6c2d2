"""NOE410 reports a `ctx` key that parallel items write without a reducer."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.flow import Flow, Write, writes
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Loop, Step, Value

GOOD = example("""\
workload: { cities: [Rome, Oslo] }
workflow:
  - step: measure
    loop:
      in: "{{ workload.cities }}"
      iterator: city
      spec:
        mode: parallel
        reduce: { ctx.hottest: max }
    tool:
      - ask:
          kind: http
          url: "https://example.org/weather/{{ iter.city }}"
          set: { ctx.hottest: "{{ output.data.temperature }}" }
""")
BAD = GOOD.replace("        reduce: { ctx.hottest: max }\n", "")
# Values that are the same for all items.
_SHARED = frozenset({("iter", "total"), ("iter", "_total"), ("outcome", "status"), ("output", "status")})


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        if step.loop and step.loop.mode == "parallel" and not subject.loop_means(step.loop, "reduce"):
            yield from _conflicts(subject.flow, step, step.loop)


def _conflicts(flow: Flow, step: Step, loop: Loop) -> Iterator[Finding]:
    by_key: dict[str, list[Write]] = {}
    reduced = _reduced(loop)
    for write in writes(step):
        key = write.assign.key
        if write.in_task and key not in reduced and key.split(".", 1)[0] not in reduced:
            by_key.setdefault(write.assign.key, []).append(write)
    items = {"iter", "outcome", "output", "_prev", "loop_index", "_index", *(task.label for task in step.tasks)}
    items.add(loop.iterator)
    for key, own in by_key.items():
        reason = _reason(flow, key, [write.assign.value for write in own], items)
        place = own[0].assign.at
        if reason is None or place is None:
            continue
        yield at(place, f"The items of this parallel loop all write `ctx.{key}`, and {reason[0]}.", reason[1])


def _reduced(loop: Loop) -> set[str]:
    """Return the keys of `ctx` that have a reducer."""
    reduce = loop.spec.get("reduce")
    declared = reduce.data if reduce and isinstance(reduce.data, dict) else {}
    return {str(name).removeprefix("ctx.").removeprefix("vars.") for name in declared}


def _reason(flow: Flow, key: str, values: list[Value], items: set[str]) -> tuple[str, str] | None:
    """Return why the values of items may differ, and the fix; None if unknown."""
    if any(_reads_itself(flow, value, key) for value in values):
        return (
            "each adds to the value from before the loop, so all changes but one are lost",
            f"Write only what this item adds, and combine the values with `loop.spec.reduce: {{ ctx.{key}: sum }}` (or append, max …).",
        )
    fix = (
        f"Add a reducer, e.g. `loop.spec.reduce: {{ ctx.{key}: last }}` (or sum, min, max, append, merge, count), "
        "or write the value to `iter` and read the step's `results`."
    )
    for value in values:
        reads = _item_reads(flow, value, items)
        if reads:
            return f"the value differs from item to item (it reads `{reads}`), which is an error at run time", fix
    if len({repr(value.data) for value in values}) > 1:
        return "not all with the same value, which is an error at run time", fix
    return None


def _reads_itself(flow: Flow, value: Value, key: str) -> bool:
    template = flow.template(value)
    path = tuple(key.split("."))
    reads = template.reads if template else ()
    return any(read.path[0] in ("ctx", "vars") and read.path[1 : len(path) + 1] == path for read in reads)


def _item_reads(flow: Flow, value: Value, items: set[str]) -> str | None:
    template = flow.template(value)
    if template is None:
        return None
    if not template.reads and not template.constant:
        return "now() or gen_uuid()"
    for read in template.reads:
        if read.path[0] in items and read.path[:2] not in _SHARED:
            return ".".join(str(part) for part in read.path)
    return None


RULE = Rule(
    code="NOE410",
    name="parallel-write",
    severity="warning",
    summary="Items of a parallel loop write different values to one `ctx` key, and no reducer combines them.",
    why=(
        "Items of a parallel loop run at the same time and cannot read each other's writes. Two different values for one key "
        "are an error at run time; a counter that every item increments ends at 1."
    ),
    fix="Declare a reducer: `loop.spec.reduce: {ctx.total: sum}`. Or write to `iter` and read the loop's `results` afterwards.",
    bad=BAD,
    good=GOOD,
    check=check,
)
