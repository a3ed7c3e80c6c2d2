"""NOE133 reports a webhook in `triggers` that could not take a delivery."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.triggers import trigger_findings
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
    # An empty credential is reported by NOE104.
    return trigger_findings(subject, "webhook", WebhookSpec, check_spec, unless="credential")


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
