"""NOE310 reports a read of `keychain` in a template that the server evaluates."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.rules.templates.reporting import at_element

GOOD = example("""\
keychain:
  - { name: crm, kind: oauth2 }
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: start
    next:
      arcs:
        - step: send
          args: { tenant: main }
  - step: send
    tool: { kind: http, method: POST, url: "{{ workload.api }}/{{ args.tenant }}", auth: crm }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for reference in subject.references:
        if reference.name == "keychain" and reference.means == ("misplaced",):
            message = "The worker resolves credentials, but the server evaluates this template."
            fix = "Use `auth: <name>` on the task, or read `keychain` in a task."
            yield at_element(subject, reference, 0, message, fix)


RULE = Rule(
    code="NOE310",
    name="keychain-on-server",
    severity="error",
    summary="A template that the server evaluates reads `keychain`.",
    why=(
        "Secrets never reach the server, because they would end up in events. The server evaluates gates, arcs, the `set` of "
        "a step, `loop.in` and `workload`."
    ),
    fix="Use `auth: <name>` on the task that needs the credential, or read `keychain` in the task's own inputs.",
    bad=GOOD.replace("args: { tenant: main }", 'args: { tenant: "{{ keychain.crm.tenant }}" }'),
    good=GOOD,
    check=check,
)
