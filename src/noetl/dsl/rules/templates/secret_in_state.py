"""NOE311 reports a credential that is written to `ctx`."""

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
  - step: login
    tool:
      kind: http
      url: "{{ workload.api }}/me"
      auth: crm
      set: { ctx.user: "{{ output.data.name }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    for reference in subject.references:
        site = reference.site
        written = site.role in ("task_set", "task_then") and site.field.startswith("ctx.")
        if reference.name == "keychain" and written and reference.means == ("scope",):
            message = f"A credential is written to `{site.field}`, and every change of `ctx` is stored as an event."
            fix = "Do not store the secret: use `auth: <name>` on every task that needs it."
            yield at_element(subject, reference, 0, message, fix)


RULE = Rule(
    code="NOE311",
    name="secret-in-state",
    severity="error",
    summary="A resolved credential is written to `ctx`.",
    why="Changes of `ctx` are events: the secret would stay in the event log forever, visible to everyone with access to it.",
    fix="Name the credential with `auth` on the tasks that need it.",
    bad=GOOD.replace("{{ output.data.name }}", "{{ keychain.crm.token }}"),
    good=GOOD,
    check=check,
)
