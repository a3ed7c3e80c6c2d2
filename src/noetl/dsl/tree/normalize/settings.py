"""Normalize the `spec` of any level: settings in a policy belong beside it.

`policy.results` holds settings of `result`, and `policy.defaults` settings of the `spec` itself; what the `spec` says
wins. Other keys in them have no effect, and a rule of the checker says so. Tested in tests/unit/dsl/tree/test_wild_forms.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.layered_settings import LAYERED
from noetl.dsl.grammar.types import Field, fits
from noetl.dsl.reading.nodes import Entry, MapNode, Node
from noetl.dsl.tree.normalize.values import value, values
from noetl.dsl.tree.playbook import Value

_SETTINGS = {field.name: field for field in LAYERED}
_RESULT = {field.name: field for field in LEVELS["result"].fields}
POLICIES: dict[str, dict[str, Field]] = {"defaults": _SETTINGS, "results": _RESULT}


def settings(spec: Node | None) -> dict[str, Value]:
    """Return the settings of a `spec`, with those that its policy holds."""
    found = values(spec)
    policy = spec.get("policy") if isinstance(spec, MapNode) else None
    if not isinstance(policy, MapNode) or not any(name in policy for name in POLICIES):
        return found
    rest = {key: data for key, data in found["policy"].data.items() if key not in POLICIES}
    found = {name: one for name, one in found.items() if name != "policy"}
    found |= {"policy": Value(rest, policy)} if rest else {}
    for entry in effective(policy.get("defaults"), _SETTINGS):
        found.setdefault(entry.key.text, value(entry.value))
    results = {entry.key.text: value(entry.value).data for entry in effective(policy.get("results"), _RESULT)}
    if results:
        own = found.get("result")
        given = own.data if own is not None and isinstance(own.data, dict) else {}
        found["result"] = Value({**results, **given}, policy.get("results"))
    return found


def effective(node: Node | None, known: dict[str, Field]) -> Iterator[Entry]:
    """Yield the entries of a policy that are settings of this language."""
    for entry in node if isinstance(node, MapNode) else ():
        field = known.get(entry.key.text)
        if field is not None and fits(entry.value, field.type):
            yield entry
