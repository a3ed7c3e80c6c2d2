"""NOE322 reports a key of `iter` that the loop does not have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from noetl.dsl.analysis.scopes import is_iteration_key, iteration_names
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
workload: { users: [{ name: Ada }, { name: Max }] }
workflow:
  - step: greet
    loop: { in: "{{ workload.users }}", iterator: user }
    tool: { kind: noop, message: "Hello, {{ iter.user.name }}!" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for reference in subject.references:
        step, key = reference.site.step, reference.key
        if (
            reference.name != "iter"
            or reference.means != ("scope",)
            or step is None
            or step.loop is None
            or key is None
        ):
            continue
        site = reference.site
        if is_iteration_key(site, subject.names, key) or key in subject.obscured or reference.read.guarded:
            continue
        item = step.loop.iterator
        message = f"`iter` has no '{key}' in the loop of step '{step.name}'.{subject.suggestions.did_you_mean(key, partial(iteration_names, site, subject.names))}"
        fix = f"The item is `iter.{item}`, its fields are `iter.{item}.<name>`; write other keys with `set`."
        yield at_element(subject, reference, 1, message, fix)


RULE = Rule(
    code="NOE322",
    name="unknown-iteration-key",
    severity="error",
    summary="A template reads a key of `iter` that the loop does not have.",
    why=(
        "`iter` has the item under the name of the iterator, `index`, `total`, `first`, `last`, `parent`, and the keys that "
        "tasks of the step write to it. It is not the item itself."
    ),
    fix="Read fields of the item through the iterator: `iter.user.name`, or `user.name`.",
    bad=GOOD.replace("iter.user.name", "iter.name"),
    good=GOOD,
    check=check,
)
