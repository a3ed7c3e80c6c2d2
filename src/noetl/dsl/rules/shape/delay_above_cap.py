"""NOE128 reports a first delay of `retries` that is longer than the longest one allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from noetl.dsl.nodes import MapNode
from noetl.dsl.playbook import Value
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.shape.parts import tasks
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: ping, path: examples/ping }
workflow:
  - step: ping
    spec:
      retries:
        plugin: { base_ms: 500, max_ms: 10000 }
    tool:
      kind: http
      url: https://example.org/ping
"""


def check(subject: Subject) -> Iterator[Found]:
    for spec in _specs(subject):
        retries = spec["retries"].at if "retries" in spec else None
        for entry in retries if isinstance(retries, MapNode) else ():
            if isinstance(entry.value, MapNode):
                yield from _above(entry.key.text, entry.value)


def _specs(subject: Subject) -> Iterator[Mapping[str, Value]]:
    yield subject.playbook.executor.spec
    for step in subject.playbook.workflow:
        yield step.spec
        if step.loop:
            yield step.loop.spec
    for _, task in tasks(subject):
        yield task.spec


def _above(name: str, limits: MapNode) -> Iterator[Found]:
    base, most = limits.get("base_ms"), limits.get("max_ms")
    first, longest = getattr(base, "value", None), getattr(most, "value", None)
    if base is not None and isinstance(first, int) and isinstance(longest, int) and first > longest:
        yield at(
            base,
            f"The first delay of `retries.{name}` is {first} ms, and none may be longer than {longest} ms.",
            "Every delay is `max_ms` then: make `base_ms` the smaller one of the two.",
        )


RULE = Rule(
    code="NOE128",
    name="delay-above-cap",
    group="shape",
    severity="warning",
    summary="`base_ms` of a runtime retry is larger than its `max_ms`.",
    why="Delays begin with `base_ms`, double from retry to retry and end at `max_ms`; the other way round, nothing grows.",
    fix="Put the shorter time under `base_ms` and the longer one under `max_ms`. Both are milliseconds.",
    bad=GOOD.replace("base_ms: 500", "base_ms: 50000"),
    good=GOOD,
    check=check,
)
