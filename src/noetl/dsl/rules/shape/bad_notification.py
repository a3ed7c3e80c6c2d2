"""NOE136 reports a notification that could not be sent."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.checking.triggers import trigger_findings
from noetl.triggers.notification import NotificationSpec
from noetl.triggers.notification import check as check_spec

GOOD = example("""\
workflow:
  - step: load
    tool: { kind: noop }
notifications:
  - name: ops
    on: [failed, sla]
    sla: 2h
    channel: slack
    credential: ops_slack
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    return trigger_findings(subject, "notification", NotificationSpec, check_spec)


RULE = Rule(
    code="NOE136",
    name="bad-notification",
    severity="error",
    summary="An entry of `notifications` could not be sent.",
    why="No message goes out when the playbook fails: the channel lacks its address, or the duration of `sla` is missing.",
    fix="Give the channel what it needs: `credential`, `url` or `to`, and `sla` a duration.",
    bad=GOOD.replace("    credential: ops_slack\n", ""),
    good=GOOD,
    check=check,
)
