"""NOE403 reports a gate that waits for a `ctx` key which only the gated step, or steps behind it, write."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analyze import writes
from noetl.dsl.playbook import Step
from noetl.dsl.rule import Found, Rule
from noetl.dsl.sites import Site
from noetl.dsl.subject import Subject
from noetl.expr import Read

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: prepare
    tool: { kind: noop }
    set: { ctx.ready: true }
    next: load
  - step: load
    spec:
      policy:
        admit:
          rules:
            - when: "{{ ctx.ready }}"
              then: { allow: true }
    tool: { kind: noop }
    next: clean
  - step: clean
    tool: { kind: noop }
"""
BAD = GOOD.replace("    set: { ctx.ready: true }\n    next: load\n", "    next: load\n").replace(
    "  - step: clean\n    tool: { kind: noop }\n",
    "  - step: clean\n    tool: { kind: noop }\n    set: { ctx.ready: true }\n",
)


def check(subject: Subject) -> Iterator[Found]:
    gates = [site for site in subject.sites if site.role == "admit" and site.template is not None]
    if not gates or not subject.net_is_whole:
        return
    writers = _writers(subject)
    told: set[tuple[str, str]] = set()
    for site in gates:
        step = site.step
        if step is None or not _allows(step, site):
            continue
        for read, key in _awaited(site):
            found = writers.get(key, [])
            if (step.name, key) in told or not found:
                continue
            if subject.flow.admission(step, unwritten=key).may_allow:
                continue
            if _only_behind(subject, subject.net.index[step.name], found):
                told.add((step.name, key))
                start = subject.locate(site, read.offset)
                end = subject.locate(site, read.offsets[1] + len(key))
                yield Found(start, end, *_texts(step, key, [subject.net.steps[number].name for number in found]))


def _allows(step: Step, site: Site) -> bool:
    return any(rule.allow and rule.when is not None and rule.when.at is site.node for rule in step.admit or ())


def _texts(step: Step, key: str, behind: list[str]) -> tuple[str, str]:
    listed = " and ".join(f"'{name}'" for name in dict.fromkeys(behind))
    return (
        f"The gate of step '{step.name}' waits for `ctx.{key}`, which is written only in {listed}: behind the gate.",
        f"Write `ctx.{key}` in a step that runs before '{step.name}', or wait for another key.",
    )


def _writers(subject: Subject) -> dict[str, list[int]]:
    """Map keys of `ctx` to the steps that write them with something other than false or nothing."""
    found: dict[str, list[int]] = {}
    for number, step in enumerate(subject.net.steps):
        for write in writes(step):
            if write.assign.value.data:
                found.setdefault(write.assign.key.split(".", 1)[0], []).append(number)
    return found


def _only_behind(subject: Subject, gate: int, writers: list[int]) -> bool:
    """Tell whether no token can come to one of these steps without passing the gate."""
    net = subject.net
    if any(number != gate and not net.reaches(gate, number) for number in writers):
        return False
    seen = 1 << gate
    pending = [root for root in net.roots() if root != gate]
    while pending:
        number = pending.pop()
        if seen >> number & 1:
            continue
        if number in writers:
            return False
        seen |= 1 << number
        pending.extend(edge.target for edge in net.out[number])
    return True


def _awaited(site: Site) -> Iterator[tuple[Read, str]]:
    """Give the keys of `ctx` that a condition looks at."""
    for read in site.template.reads if site.template else ():
        if read.path[0] in ("ctx", "vars") and len(read.path) > 1 and read.path[1] != "signals":
            yield read, str(read.path[1])


RULE = Rule(
    code="NOE403",
    name="gate-waits-for-itself",
    group="graph",
    severity="warning",
    summary="A gate opens only after a write that happens behind it.",
    why=(
        "The token parks before the gate, the step that would open it is never reached, and the execution waits until "
        "somebody patches `ctx` by hand."
    ),
    fix="Write the key in a step before the gate. Where the value comes from outside, do not write that key behind the gate.",
    bad=BAD,
    good=GOOD,
    check=check,
)
