"""NOE133 reports a webhook in `triggers` that could not take a delivery."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.checking.triggers import misnamed, node_of
from noetl.dsl.reading.nodes import Node
from noetl.dsl.tree.playbook import Trigger
from noetl.schedules.spec import Problem
from noetl.triggers.webhook import WebhookSpec
from noetl.triggers.webhook import check as check_spec

GOOD = example("""\
workload: { who: "" }
workflow:
  - step: greet
    tool: { kind: noop }
triggers:
  - webhook: push
    auth: github
    credential: github_webhook
    payload: { who: "{{ body.sender.login }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for trigger, node, problem in misnamed(subject.playbook, "webhook"):
        if problem is not None:
            yield at(node, *problem)
        else:
            yield from _problem(trigger, node)


def _problem(trigger: Trigger, name: Node) -> Iterator[Finding]:
    try:
        check_spec(msgspec.convert({key: value.data for key, value in trigger.fields.items()}, WebhookSpec))
    except Problem as problem:
        if problem.field == "credential":
            return  # empty, which NOE104 reports
        yield at(node_of(trigger, problem.field) or name, f"In `{problem.field}`: {problem.what}", problem.fix)
    except msgspec.ValidationError:
        return  # a wrong key or type, which other rules report


RULE = Rule(
    code="NOE133",
    name="bad-webhook",
    severity="error",
    summary="A webhook in `triggers` could not take a delivery as it is written.",
    why="A delivery must be authenticated with a form that has the given fields, and its templates read the delivery only: "
    "otherwise every delivery would be refused.",
    fix="Write the fields of the form in `auth`, and templates over `headers`, `body`, `query` and `digest`.",
    bad=GOOD.replace("body.sender", "workload.sender"),
    good=GOOD,
    check=check,
)
