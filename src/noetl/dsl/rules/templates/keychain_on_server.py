"""NOE310 reports a credential that is read where only the server evaluates."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.rules.templates.reporting import at_element
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: push, path: examples/push }
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
"""


def check(subject: Subject) -> Iterator[Found]:
    for reference in subject.references:
        if reference.name == "keychain" and reference.means == ("misplaced",):
            message = "Credentials are resolved on the worker, and this template is evaluated by the server."
            fix = "Read `keychain` in a task, or better let the task use the credential: `auth: <name>`."
            yield at_element(subject, reference, 0, message, fix)


RULE = Rule(
    code="NOE310",
    name="keychain-on-server",
    group="templates",
    severity="error",
    summary="A template reads `keychain` where the server evaluates it.",
    why=(
        "Secrets never reach the server: they would end up in events. Gates, arcs, the `set` of a step, `loop.in` and "
        "`workload` are evaluated there."
    ),
    fix="Use `auth: <name>` on the task that needs the credential, or read `keychain` in the task's own inputs.",
    bad=GOOD.replace("args: { tenant: main }", 'args: { tenant: "{{ keychain.crm.tenant }}" }'),
    good=GOOD,
    check=check,
)
