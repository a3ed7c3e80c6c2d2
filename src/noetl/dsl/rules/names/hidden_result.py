"""NOE212 reports a key of `ctx` that hides the result of a step."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.scopes import step_writes
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Assign

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: order
    tool: { kind: http, method: POST, url: "{{ workload.api }}/orders" }
    set: { ctx.order_id: "{{ order.data.id }}" }
    next: ship
  - step: ship
    tool: { kind: http, method: POST, url: "{{ workload.api }}/ship/{{ order.data.address }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    clashes = subject.names.ctx & subject.names.steps
    if not clashes:
        return
    readers: dict[str, str] = {}
    for reference in subject.references:
        site = reference.site
        # In the step itself the name still means its own result.
        if (
            reference.name in clashes
            and reference.means[:1] == ("ctx",)
            and site.step
            and site.step.name != reference.name
        ):
            readers.setdefault(reference.name, site.step.name)
    for step in subject.playbook.workflow:
        for write in step_writes(step):
            name = write.key.split(".", 1)[0]
            reader = readers.get(name)
            if reader and write.scope == "ctx" and write.at is not None and not _is_the_result(step.name, write):
                message = (
                    f"After this write, `{{{{ {name} }}}}` in step '{reader}' reads `ctx.{name}`, "
                    f"not the result of step '{name}'."
                )
                yield at(write.at, message, f"Use another key, such as `ctx.{name}_value`, and read it as `ctx.…`.")


def _is_the_result(step: str, write: Assign) -> bool:
    """Return whether a step stores its whole result under its own name."""
    value = "".join(str(write.value.data).split())
    own = (step, f"{step}.data", "outcome.result", "output.data", "output")
    return write.key == step and value in {f"{{{{{name}}}}}" for name in own}


RULE = Rule(
    code="NOE212",
    name="hidden-result",
    severity="warning",
    summary="A write to `ctx` hides the result of a step that a template reads by name.",
    why="A bare name is looked up in `ctx` before the results of steps, so the template cannot reach the result.",
    fix="Rename the key of `ctx`, so that it differs from the step.",
    bad=GOOD.replace("ctx.order_id:", "ctx.order:"),
    good=GOOD,
    check=check,
)
