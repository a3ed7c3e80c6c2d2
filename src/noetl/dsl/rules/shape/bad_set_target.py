"""NOE121 reports a write to a target that cannot be written."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode, Node, Scalar
from noetl.dsl.rules.shape.traversal import writes
from noetl.dsl.tree.playbook import Assign

GOOD = example("""\
workload: { total: 0 }
workflow:
  - step: count
    tool: { kind: noop, result: { total: 3 } }
    set: { ctx.total: "{{ output.data.total + workload.total }}" }
    next: report
  - step: report
    tool: { kind: noop, message: "{{ ctx.total }}" }
""")
_WRITABLE = ("ctx", "iter", "step")
_READ_ONLY = {
    "workload": "the input of the execution, which never changes",
    "keychain": "the resolved credentials, which are read-only",
    "args": "the arguments of this step-run, which never change",
    "input": "the inputs of the step, which never change",
    "outcome": "the outcome of the task",
    "output": "the outcome of the task",
    "event": "the current event",
    "execution_id": "the id of the execution",
    "job": "the identity of the execution",
    "_prev": "the result of the previous task",
    "_task": "the label of the task",
    "_attempt": "the number of the attempt",
}


def check(subject: CheckContext) -> Iterator[Finding]:
    for _, _, assigns in writes(subject):
        for assign in assigns:
            if assign.at is not None:
                yield from _judge(assign, assign.at)
    for step in subject.playbook.workflow:
        reduced = step.loop.spec.get("reduce") if step.loop else None
        yield from _reduced(reduced.at if reduced else None)


def _judge(assign: Assign, node: Scalar) -> Iterator[Finding]:
    head, dot, rest = assign.key.partition(".")
    if "{" in assign.key:
        message = "The target of a write must be a fixed name; a template in it is not rendered."
        yield at(node, message, "Write a fixed name, and put the variable part into a map under it.")
    elif not all(part.strip() for part in assign.key.split(".")):
        yield at(node, f"'{node.text}' has no name after the scope.", "Add a name, such as `ctx.total`.")
    elif head in _READ_ONLY and dot:
        message = f"'{node.text}' cannot be written: {head} is {_READ_ONLY[head]}."
        yield at(node, message, f"Write to `ctx.{rest}` and read it from there.")
    elif head in _WRITABLE and dot:
        message = f"'{node.text}' names the scope `{head}` inside a write to `{assign.scope}`."
        yield at(node, message, f"Write `{rest}` under `set_{head}`, or `{head}.{rest}` under `set`.")
    elif head in _WRITABLE or head == "vars":
        message = f"'{node.text}' is a scope; a write needs a name in it."
        yield at(node, message, f"Add a name, such as `{head}.total`.")


def _reduced(node: Node | None) -> Iterator[Finding]:
    """Check the keys of `loop.spec.reduce`, which are targets too."""
    if not isinstance(node, MapNode):
        return
    for key, _ in node:
        head, dot, rest = key.text.partition(".")
        if dot and head not in ("ctx", "vars") and (head in _READ_ONLY or head in _WRITABLE):
            message = f"A reducer combines writes to `ctx`; '{key.text}' is not in `ctx`."
            yield at(key, message, f"Write `ctx.{rest}`.")


RULE = Rule(
    code="NOE121",
    name="bad-set-target",
    severity="error",
    summary="A write targets a read-only scope, or has no name.",
    why="Only `ctx`, `iter` and `step` can be written; `workload`, `args`, `keychain` and the outcome of a task are "
    "read-only. The value would end up under a name that no template reads.",
    fix="Write to `ctx.<name>` (for later steps), `iter.<name>` (for this iteration) or `step.<name>` (for this step-run).",
    bad=GOOD.replace('ctx.total: "{{ output', 'workload.total: "{{ output').replace(
        'message: "{{ ctx.total }}"', 'message: "{{ workload.total }}"'
    ),
    good=GOOD,
    check=check,
)
