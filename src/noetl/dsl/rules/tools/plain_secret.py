"""NOE505 reports a password, token or key in plain text in the playbook."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.ranges import Ranges
from noetl.dsl.rules.tools.secret_patterns import is_placeholder, known_secrets
from noetl.dsl.secret_names import is_secret_name

GOOD = example("""\
workflow:
  - step: fetch
    tool:
      kind: http
      url: "https://example.org/orders"
      auth: orders_api
""")
BAD = GOOD.replace("auth: orders_api", "headers: { Authorization: Bearer 3f9a8c1d7e5b2046 }")
_SECTIONS = ("workload", "keychain", "workbook", "workflow")
_NAMES = ("credentials", "session")  # in a playbook mostly the name of one
_FIX = (
    "Store it as a credential and name the credential in `auth`, or read it from `keychain.<name>`. "
    "Then rotate the secret: everyone with access to this file knows it."
)


def check(subject: CheckContext) -> Iterator[Finding]:
    declared = {entry.name for entry in subject.playbook.keychain}
    reported: list[tuple[int, int]] = []
    for section in _SECTIONS:
        for key, value in _literals(subject.root.get(section) if subject.root else None):
            is_name = value.text in declared or value.text == key.text
            if not is_name and not is_placeholder(value.text) and not subject.is_misread(value):
                reported.append((value.start, value.end))
                yield at(value, f"'{key.text}' contains a secret in plain text.", _FIX)
    for name, found in groupby(known_secrets(subject.source.text), itemgetter(0)):
        before = Ranges(reported)
        for _, start, end in found:
            if not before.cover(start):
                reported.append((start, end))
                yield Finding(start, end, f"This looks like {name} in plain text.", _FIX)


def _literals(root: Node | None) -> Iterator[tuple[Scalar, Scalar]]:
    """Yield every key with the name of a secret and a literal value."""
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, ListNode):
            pending.extend(node.items)
        elif isinstance(node, MapNode) and not _holds_names(node):
            for key, value in node.entries:
                if not isinstance(value, Scalar):
                    pending.append(value)
                elif is_secret_name(key.text) and key.text not in _NAMES and _is_literal(key.text, value):
                    yield key, value


def _is_literal(name: str, value: Scalar) -> bool:
    if value.is_string:
        return "{{" not in value.text and "{%" not in value.text
    return "pass" in name.lower() and isinstance(value.value, int) and not isinstance(value.value, bool)


def _holds_names(node: MapNode) -> bool:
    """Return whether a map says where secrets are stored: its values are names."""
    kind = node.get("kind")
    return isinstance(kind, Scalar) and ("secret" in kind.text or kind.text == "vault")


RULE = Rule(
    code="NOE505",
    name="plain-secret",
    severity="warning",
    summary="The playbook contains a secret in plain text.",
    why=(
        "A playbook is stored in the catalog and in version control, shown in the UI and sent to workers. Everyone with access "
        "to any of these can read the secret, and old versions keep it forever."
    ),
    fix=(
        "Store it as a credential and name the credential in the task's `auth`. Where a tool has no `auth`, read "
        "`keychain.<name>` in the task's input. Placeholders such as `<token>` or `***` are not reported."
    ),
    bad=BAD,
    good=GOOD,
    check=check,
)
