"""NOE113 reports a setting that is written under two names."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Entry, MapNode, Node

GOOD = example("""\
workflow:
  - step: ping
    tool:
      kind: http
      url: https://example.org/ping
      timeout_ms: 5000
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for finding in subject.shape:
        if finding.kind == "twice" and finding.tool is None and finding.field:
            message = f"'{finding.name}' is an alias of '{finding.field.name}', which is in the same map."
            yield at(finding.node, message, f"Keep one of them, preferably `{finding.field.name}`.")
    for task in subject.playbook.all_tasks:
        if isinstance(task.at, MapNode):
            yield from _timeouts(task.at)
            yield from _in_both(task.at, task.at.get("spec"), ("idempotent", "priority"))
    for step in subject.playbook.workflow:
        if step.loop and isinstance(step.loop.at, MapNode):
            yield from _in_both(step.loop.at, step.loop.at.get("spec"), ("mode", "max_in_flight"))


def _timeouts(task: MapNode) -> Iterator[Finding]:
    written: list[Entry] = [e for name in ("timeout_ms", "timeout", "timeout_seconds") if (e := task.entry(name))]
    spec = task.get("spec")
    under = spec.entry("timeout") if isinstance(spec, MapNode) else None
    if under:
        written.append(under)
    for entry in written[1:]:
        first = written[0].key.text
        message = f"'{entry.key.text}' and '{first}' both set the timeout of an attempt; '{first}' would win."
        yield at(entry.key, message, "Keep one of them.")


def _in_both(node: MapNode, spec: Node | None, names: tuple[str, ...]) -> Iterator[Finding]:
    for name in names:
        entry = node.entry(name)
        if entry and isinstance(spec, MapNode) and name in spec:
            message = f"'{name}' is set here and under `spec`; the short form means the same."
            yield at(entry.key, message, f"Keep either `spec.{name}` or the short form.")


RULE = Rule(
    code="NOE113",
    name="key-twice",
    severity="error",
    summary="A setting is written twice, under two of its names.",
    why="Only one of the two takes effect, and the playbook does not show which one.",
    fix="Keep one of them. Some keys have an alias: `input` and `args`, `auth` and `credential`, `profile` and `kind` "
    "of the executor. `timeout_ms` and `timeout` differ only in their unit.",
    bad=GOOD.replace("timeout_ms: 5000", "timeout_ms: 5000\n      timeout: 30"),
    good=GOOD,
    check=check,
)
