"""NOE135 reports a subscription in `triggers` that could take in no message."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.triggers import trigger_findings
from noetl.triggers.subscription import SubscriptionSpec
from noetl.triggers.subscription import check as check_spec

GOOD = example("""\
workload: { order: 0 }
workflow:
  - step: ship
    tool: { kind: noop }
triggers:
  - subscription: orders
    source: table
    auth: orders_db
    table: public.orders
    key: id
    payload: { order: "{{ message.data.id }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    return trigger_findings(subject, "subscription", SubscriptionSpec, check_spec)


RULE = Rule(
    code="NOE135",
    name="bad-subscription",
    severity="error",
    summary="A subscription in `triggers` could take in no message as it is written.",
    why="Each source has fields of its own, and templates read the message only: otherwise nothing could be polled, or every "
    "message would become a dead letter.",
    fix="Write the fields of the `source`, and templates of `payload` over `message`.",
    bad=GOOD.replace("message.data", "row"),
    good=GOOD,
    check=check,
)
