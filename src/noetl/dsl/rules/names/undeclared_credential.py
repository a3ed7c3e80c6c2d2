"""NOE213 reports an `auth` name that the playbook's keychain does not declare."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.tree.playbook import Value

GOOD = example("""\
keychain:
  - { name: pg_main, kind: postgres }
workflow:
  - step: read
    tool: { kind: postgres, auth: pg_main, query: SELECT 1 AS one }
""")


def check(subject: CheckContext) -> Iterator[Finding]:
    declared = {entry.name for entry in subject.playbook.keychain}
    if not declared:
        return
    declared.update(
        str(entry.fields["credential"].data) for entry in subject.playbook.keychain if "credential" in entry.fields
    )
    known = declared | subject.obscured
    for auth in _credentials(subject):
        name = auth.data
        if isinstance(name, str) and "{" not in name and name not in known and auth.at is not None:
            message = f"The credential '{name}' is not declared under `keychain`.{subject.suggestions.did_you_mean(name, declared)}"
            yield at(auth.at, message, f"Correct the name, or declare it: `- {{ name: {name}, kind: … }}`.")


def _credentials(subject: CheckContext) -> Iterator[Value]:
    playbook = subject.playbook
    for step in playbook.workflow:
        if step.loop and step.loop.cursor and "auth" in step.loop.cursor:
            yield step.loop.cursor["auth"]
    yield from (task.auth for task in playbook.all_tasks if task.auth is not None)


RULE = Rule(
    code="NOE213",
    name="undeclared-credential",
    severity="hint",
    summary="A task uses a credential that the playbook's keychain does not declare.",
    why=(
        "You can use a stored credential without declaring it. But where a playbook declares its credentials, a missing "
        "one is often a typing mistake, and readers expect a complete list. Playbooks without a `keychain` are not checked."
    ),
    fix="Correct the name, or add the credential to `keychain`.",
    bad=GOOD.replace("auth: pg_main", "auth: pg_mian"),
    good=GOOD,
    check=check,
)
