"""NOE214 reports a read of a keychain entry that the playbook does not declare."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside

GOOD = example("""\
keychain:
  - { name: crm, kind: oauth2 }
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: send
    tool:
      kind: http
      method: POST
      url: "{{ workload.api }}/contacts"
      headers: { Authorization: "Bearer {{ keychain.crm.token }}" }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    declared = {entry.name for entry in subject.playbook.keychain}
    if not declared:
        return
    for reference in subject.references:
        key = reference.key
        if reference.name != "keychain" or reference.means != ("scope",) or key is None or reference.read.guarded:
            continue
        if key not in declared and key not in subject.obscured:
            message = f"`keychain` declares no '{key}', which this template reads.{subject.suggestions.did_you_mean(key, declared)}"
            fix = "Correct the name, or declare the credential under `keychain`."
            yield inside(subject, reference.site, reference.read.offsets[1], len(key), message, fix)


RULE = Rule(
    code="NOE214",
    name="undeclared-keychain-entry",
    severity="warning",
    summary="A template reads a keychain entry that is not declared.",
    why="Templates can only read credentials that `keychain` declares, so this value is undefined when the task runs.",
    fix="Correct the name, or declare the credential under `keychain`.",
    bad=GOOD.replace("keychain.crm.token", "keychain.cmr.token"),
    good=GOOD,
    check=check,
)
