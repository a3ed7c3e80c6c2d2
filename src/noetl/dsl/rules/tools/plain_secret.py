"""NOE505 reports a password, token or key that is written into the playbook."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.rule import Found, Rule, at
from noetl.dsl.rules.tools.secret_words import is_placeholder, known_secrets
from noetl.dsl.rules.tools.unread import is_unread
from noetl.dsl.secret_names import is_secret_name
from noetl.dsl.subject import Subject

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workflow:
  - step: fetch
    tool:
      kind: http
      url: "https://example.org/orders"
      auth: orders_api
"""
BAD = GOOD.replace("auth: orders_api", "headers: { Authorization: Bearer 3f9a8c1d7e5b2046 }")
_SECTIONS = ("workload", "keychain", "workbook", "workflow")
_FIX = (
    "Keep it as a credential and name that in `auth`, or read it from `keychain.<name>`. "
    "Then change the secret: whoever could read this file knows it."
)


def check(subject: Subject) -> Iterator[Found]:
    declared = {entry.name for entry in subject.playbook.keychain}
    told: list[tuple[int, int]] = []
    for section in _SECTIONS:
        for key, value in _literals(subject.root.get(section) if subject.root else None):
            is_name = value.text in declared or value.text == key.text
            if not is_name and not is_placeholder(value.text) and not is_unread(subject, value):
                told.append((value.start, value.end))
                yield at(value, f"'{key.text}' is written into the playbook in plain text.", _FIX)
    for name, start, end in known_secrets(subject.source.text):
        if not any(first <= start < last for first, last in told):
            told.append((start, end))
            yield Found(start, end, f"This looks like {name}, in plain text.", _FIX)


def _literals(root: Node | None) -> Iterator[tuple[Scalar, Scalar]]:
    """Give every key that holds a secret by its name, with its value where that is a text and no template."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, ListNode):
            pending.extend(node.items)
        elif isinstance(node, MapNode) and not _holds_names(node):
            for key, value in node.entries:
                if not isinstance(value, Scalar):
                    pending.append(value)
                elif is_secret_name(key.text) and _is_literal(key.text, value):
                    yield key, value


def _is_literal(name: str, value: Scalar) -> bool:
    if value.is_string:
        return "{{" not in value.text and "{%" not in value.text
    return "pass" in name.lower() and isinstance(value.value, int) and not isinstance(value.value, bool)


def _holds_names(node: MapNode) -> bool:
    """Tell whether a map says where secrets are kept: its values are names, not the secrets."""
    kind = node.get("kind")
    return isinstance(kind, Scalar) and ("secret" in kind.text or kind.text == "vault")


RULE = Rule(
    code="NOE505",
    name="plain-secret",
    group="tools",
    severity="warning",
    summary="A secret is written into the playbook.",
    why=(
        "A playbook is stored in the catalog, kept in version control, shown in the interface and sent to workers. A secret in "
        "it is known to everybody who can read any of these, and stays in old versions for ever."
    ),
    fix=(
        "Store it as a credential and name that in the task's `auth`. Where a tool has no place for one, read "
        "`keychain.<name>` in the task's input. Placeholders such as `<token>` or `***` are not reported."
    ),
    bad=BAD,
    good=GOOD,
    check=check,
)
