"""NOE403 reports a gate that waits for its own step or a step after it."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.flow import Missing, writes
from noetl.dsl.analysis.references import ASKED, meanings
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside
from noetl.dsl.tree.playbook import Step

GOOD = example("""\
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
""")
BAD = GOOD.replace("    set: { ctx.ready: true }\n    next: load\n", "    next: load\n").replace(
    "  - step: clean\n    tool: { kind: noop }\n",
    "  - step: clean\n    tool: { kind: noop }\n    set: { ctx.ready: true }\n",
)


_MOST_VISITS = 300_000


def check(subject: CheckContext) -> Iterator[Finding]:
    gates = [site for site in subject.sites if site.role == "admit" and site.template is not None]
    if not gates or not subject.net_is_whole:
        return
    writers, visits, allowing = _writers(subject), _Visits(), _allowing(subject)
    reported: set[tuple[str, Missing]] = set()
    for site in gates:
        step = site.step
        if step is None or id(site.node) not in allowing:
            continue
        for missing, offset, length in (*_keys(site), *_steps(site, subject)):
            awaited = [subject.net.index[missing.step]] if missing.step else writers.get(str(missing.key), [])
            if (step.name, missing) in reported or not awaited:
                continue
            visits.left -= len(step.admit or ())
            if visits.left < 0 or subject.flow.admission(step, missing).may_allow:
                continue
            if _only_behind(subject, subject.net.index[step.name], awaited, visits):
                reported.add((step.name, missing))
                texts = _texts(step, missing, [subject.net.steps[number].name for number in awaited])
                yield inside(subject, site, offset, length, *texts)


def _allowing(subject: CheckContext) -> set[int]:
    """Return the ids of the conditions that admit a token."""
    rules = (rule for step in subject.net.steps for rule in step.admit or ())
    return {id(rule.when.at) for rule in rules if rule.allow and rule.when is not None}


def _texts(step: Step, missing: Missing, behind: list[str]) -> tuple[str, str]:
    if missing.step == step.name:
        return (
            f"The gate of step '{step.name}' waits for the step itself.",
            "Wait for a step that runs before it, or remove the condition.",
        )
    if missing.step:
        return (
            f"The gate of step '{step.name}' waits for '{missing.step}', which runs only after the gate.",
            f"Wait for a step that runs before '{step.name}', or add another path to '{missing.step}'.",
        )
    listed = " and ".join(f"'{name}'" for name in dict.fromkeys(behind))
    return (
        f"The gate of step '{step.name}' waits for `ctx.{missing.key}`, which is written only in {listed}, after the gate.",
        f"Write `ctx.{missing.key}` in a step that runs before '{step.name}', or wait for another key.",
    )


def _writers(subject: CheckContext) -> dict[str, list[int]]:
    """Map keys of `ctx` to the steps that write a truthy value to them."""
    writers: dict[str, list[int]] = {}
    for number, step in enumerate(subject.net.steps):
        for write in writes(step):
            if write.assign.value.data:
                writers.setdefault(write.assign.key.split(".", 1)[0], []).append(number)
    return writers


class _Visits:
    """Steps that the searches of one document may still visit."""

    def __init__(self) -> None:
        self.left = _MOST_VISITS


def _only_behind(subject: CheckContext, gate: int, writers: list[int], visits: _Visits) -> bool:
    """Return whether no token can reach these steps without passing the gate.

    After many searches the answer is no: one search for each gate of a large net takes too long.
    """
    net = subject.net
    if any(number != gate and not net.reaches(gate, number) for number in writers):
        return False
    awaited, seen = set(writers), {gate}
    pending = [root for root in net.roots() if root != gate]
    while pending and visits.left > 0:
        number = pending.pop()
        if number in seen:
            continue
        if number in awaited:
            return False
        seen.add(number)
        visits.left -= 1 + len(net.out[number])
        pending.extend(edge.target for edge in net.out[number])
    return not pending


def _keys(site: TemplateSite) -> Iterator[tuple[Missing, int, int]]:
    """Yield the keys of `ctx` that a condition reads, with offset and length."""
    for read in site.template.reads if site.template else ():
        if read.path[0] in ("ctx", "vars") and len(read.path) > 1 and read.path[1] != "signals":
            key = str(read.path[1])
            yield Missing(key=key), read.offset, read.offsets[1] + len(key) - read.offset


def _steps(site: TemplateSite, subject: CheckContext) -> Iterator[tuple[Missing, int, int]]:
    """Yield the steps that a condition names in a function or reads."""
    if site.template is None:
        return
    for call in ASKED.finditer(site.template.source):
        if call["step"] in subject.net.index:
            yield Missing(step=call["step"]), call.start("step"), len(call["step"])
    for read in site.template.reads:
        name = str(read.path[0])
        if name in subject.net.index and tuple(meanings(site, name, subject.names)) == ("step",):
            yield Missing(step=name), read.offset, len(name)


RULE = Rule(
    code="NOE403",
    name="gate-waits-for-itself",
    severity="warning",
    summary="A gate waits for a step that runs, or a key that is written, only after the gate.",
    why=(
        "The token parks at the gate and never reaches the step that would open it (a deadlock). The execution waits forever, "
        "or until you patch `ctx` by hand."
    ),
    fix=(
        "Wait for a step that runs before the gate, and write the key there. If the value comes from outside, do not write "
        "that key after the gate."
    ),
    bad=BAD,
    good=GOOD,
    check=check,
)
