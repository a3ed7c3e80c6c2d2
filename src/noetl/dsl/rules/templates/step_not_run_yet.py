"""NOE313 reports a read of a step's result before the step can have ended."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.analysis.references import ASKED, Reference
from noetl.dsl.analysis.scopes import AFTER_STEP
from noetl.dsl.analysis.step_order import ended_before
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.reading.ranges import Offsets
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: fetch
    tool: { kind: http, url: "{{ workload.api }}/orders" }
    next: total
  - step: total
    tool: { kind: python, args: { orders: "{{ fetch.data }}" }, code: result = len(orders) }
    next: report
  - step: report
    tool: { kind: noop, message: "{{ total }} orders" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    if not subject.net_is_whole:
        return
    net = subject.net
    before = ended_before(net, _gates(subject))
    live = net.live()
    misshapen: frozenset[str] | None = None
    for reference in subject.references:
        site = reference.site
        if reference.means != ("step",) or reference.read.guarded or site.step is None or site.role == "admit":
            continue
        if misshapen is None:
            misshapen = _misshapen(subject)
        if site.step.name in misshapen:
            continue  # the misshapen part may be its gate
        here, there = net.index[site.step.name], net.index[reference.name]
        if here == there and site.role in AFTER_STEP:
            continue
        # NOE401 reports a step that no token reaches; what it reads does not matter.
        if before[here] >> there & 1 or not (live >> here & 1 and live >> there & 1):
            continue
        yield _report(subject, reference, here, there)


def _misshapen(subject: CheckContext) -> frozenset[str]:
    """Return the steps with a part that does not fit the grammar."""
    places = Offsets(finding.node.start for finding in subject.shape)
    return frozenset(
        step.name
        for step in (subject.net.steps if subject.shape else ())
        if step.at is not None and places.any_in(step.at.start, step.at.end)
    )


def _gates(subject: CheckContext) -> dict[str, set[str]]:
    """Return the steps and keys of `ctx` that each gate reads, by step."""
    words: dict[str, set[str]] = {}
    for reference in subject.references:
        step = reference.site.step
        if reference.site.role == "admit" and step is not None:
            own = words.setdefault(step.name, set())
            own.add(str(reference.key) if reference.name in ("ctx", "vars") else reference.name)
    for site in subject.sites:
        if site.role == "admit" and site.step is not None and site.template is not None:
            awaited = {call["step"] for call in ASKED.finditer(site.template.source)}
            words.setdefault(site.step.name, set()).update(awaited)
    return words


def _report(subject: CheckContext, reference: Reference, here: int, there: int) -> Finding:
    own, other = subject.net.steps[here].name, reference.name
    if here == there:
        message = f"The result of step '{own}' exists only after the step has ended, but this reads it inside the step."
        fix = "Read an earlier task of the pipeline by its label, or the previous task as `_prev`."
    elif subject.net.reaches(here, there):
        message = f"Step '{other}' runs after '{own}', so it has no result yet."
        fix = f"Read it in a step after '{other}', or guard the read: `{{{{ {other}.x | default(…) }}}}`."
    else:
        message = f"No path leads from step '{other}' to '{own}', so it may not have ended when this is read."
        fix = f"Add an arc from '{other}' to this step, wait in a gate for `done('{other}')`, or guard the read."
    return at_element(subject, reference, 0, message, fix)


RULE = Rule(
    code="NOE313",
    name="step-not-run-yet",
    severity="error",
    summary="A template reads the result of a step that cannot have run yet.",
    why="A step's name means its result after the step has ended. Before that, and on other branches, it is undefined.",
    fix=(
        "Read the result after the step that produces it: connect the two steps by arcs, or wait for it in the admission "
        "gate. If the result is optional, guard the read with `default` or `is defined`."
    ),
    bad=GOOD.replace("{{ fetch.data }}", "{{ report.data }}"),
    good=GOOD,
    check=check,
)
