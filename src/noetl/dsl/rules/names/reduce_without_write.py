"""NOE217 reports a reducer for a key that no task of the loop writes."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.scopes import task_writes
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode

GOOD = example("""\
workload: { parts: [1, 2, 3] }
workflow:
  - step: add
    loop:
      in: "{{ workload.parts }}"
      iterator: part
      spec: { mode: parallel, reduce: { ctx.added: count } }
    tool:
      kind: python
      args: { part: "{{ iter.part }}" }
      code: result = part * 2
      set: { ctx.added: true }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for step in subject.playbook.workflow:
        reduce = step.loop.spec.get("reduce") if step.loop else None
        if reduce is None or not isinstance(reduce.at, MapNode):
            continue
        written = {write.key for task in step.tasks for write in task_writes(task) if write.scope == "ctx"}
        for entry in reduce.at:
            key = entry.key.text.removeprefix("ctx.").removeprefix("vars.")
            if key in written or key.split(".", 1)[0] in subject.obscured:
                continue
            message = (
                f"The reducer of `{entry.key.text}` combines writes of the items, but no task of the loop writes it."
            )
            message += subject.suggestions.did_you_mean(key, written).replace(" Did you mean '", " Did you mean 'ctx.")
            yield at(entry.key, message, f"Write the key in a task, `set: {{ ctx.{key}: … }}`, or remove the reducer.")


RULE = Rule(
    code="NOE217",
    name="reduce-without-write",
    severity="warning",
    summary="A loop reduces a key of `ctx` that none of its tasks writes.",
    why="The reducer has nothing to combine, so the key stays empty, and the key that is written has no reducer.",
    fix="Use the same key in `reduce` and in the `set` of a task in the loop.",
    bad=GOOD.replace("reduce: { ctx.added: count }", "reduce: { ctx.adde: count }"),
    good=GOOD,
    check=check,
)
