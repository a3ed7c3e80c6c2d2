"""NOE323 reports a read of a key of `step` that the step never writes."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workflow:
  - step: count
    tool:
      - first: { kind: noop, result: 1, set: { step.seen: "{{ output.data }}" } }
      - second: { kind: noop, result: "{{ step.seen + 1 }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for reference in subject.references:
        step, key = reference.site.step, reference.key
        if reference.name != "step" or reference.means != ("scope",) or step is None or key is None:
            continue
        written = subject.names.scratch[step.name]
        if key in written or key in subject.obscured or reference.read.guarded:
            continue
        message = f"Step '{step.name}' never writes `step.{key}`.{subject.suggestions.did_you_mean(key, written)}"
        fix = f"Write it in a task of this step: `set: {{ step.{key}: … }}`. To read the result of a step, use the name of the step."
        yield at_element(subject, reference, 1, message, fix)


RULE = Rule(
    code="NOE323",
    name="unwritten-scratch-key",
    severity="error",
    summary="A template reads a key of `step` that the step does not write.",
    why="`step` holds scratch values of one step-run, which only its own tasks write. This one is undefined.",
    fix="Write the value with `set` in a task of the same step, or read the scope that has it.",
    bad=GOOD.replace("{{ step.seen + 1 }}", "{{ step.sene + 1 }}"),
    good=GOOD,
    check=check,
)
