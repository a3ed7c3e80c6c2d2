"""NOE128 reports a runtime retry whose first delay exceeds the longest one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import MapNode
from noetl.dsl.tree.playbook import Value

GOOD = example("""\
workflow:
  - step: ping
    spec:
      retries:
        plugin: { base_ms: 500, max_ms: 10000 }
    tool:
      kind: http
      url: https://example.org/ping
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for spec in _specs(subject):
        retries = spec["retries"].at if "retries" in spec else None
        for entry in retries if isinstance(retries, MapNode) else ():
            if isinstance(entry.value, MapNode):
                yield from _above(entry.key.text, entry.value)


def _specs(subject: CheckContext) -> Iterator[Mapping[str, Value]]:
    yield subject.playbook.executor.spec
    for step in subject.playbook.workflow:
        yield step.spec
        if step.loop:
            yield step.loop.spec
    for task in subject.playbook.all_tasks:
        yield task.spec


def _above(name: str, limits: MapNode) -> Iterator[Finding]:
    base, most = limits.get("base_ms"), limits.get("max_ms")
    first, longest = getattr(base, "value", None), getattr(most, "value", None)
    if base is not None and isinstance(first, int) and isinstance(longest, int) and first > longest:
        yield at(
            base,
            f"The first delay of `retries.{name}` is {first} ms, but `max_ms` limits every delay to {longest} ms.",
            "Every delay is then `max_ms`. Make `base_ms` smaller than `max_ms`.",
        )


RULE = Rule(
    code="NOE128",
    name="delay-above-cap",
    severity="warning",
    summary="`base_ms` of a runtime retry is larger than its `max_ms`.",
    why="Delays start at `base_ms` and double with every retry up to `max_ms`. With a larger `base_ms` they never grow.",
    fix="Write the shorter time as `base_ms` and the longer one as `max_ms`. Both are in milliseconds.",
    bad=GOOD.replace("base_ms: 500", "base_ms: 50000"),
    good=GOOD,
    check=check,
)
