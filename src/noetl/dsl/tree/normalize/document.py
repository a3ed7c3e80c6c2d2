"""Normalize the sections of a document to a `Playbook`."""

from __future__ import annotations

from noetl.dsl.dialects.lowering import lower
from noetl.dsl.grammar.forms import trigger_kind
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.parse import Document
from noetl.dsl.tree.normalize.settings import settings
from noetl.dsl.tree.normalize.step import step
from noetl.dsl.tree.normalize.subscription import as_playbook, is_subscription
from noetl.dsl.tree.normalize.task import workbook
from noetl.dsl.tree.normalize.values import first, optional, plain_text, text, value, values
from noetl.dsl.tree.playbook import NOTIFICATION, Executor, Keychain, Playbook, Step, Trigger


def normalize(document: Document) -> Playbook:
    """Return the canonical tree of a document without missing and misshapen parts."""
    return tree(lower(document).root)


def tree(root: Node | None) -> Playbook:
    """Return the canonical tree of a document that was lowered."""
    if not isinstance(root, MapNode):
        return Playbook("", "", ())
    if is_subscription(root):
        root = as_playbook(root)
    metadata = root.get("metadata")
    names = metadata if isinstance(metadata, MapNode) else None
    policy = root.get("policy")
    return Playbook(
        name=plain_text(names.get("name")) if names else "",
        path=plain_text(names.get("path")) if names else "",
        workflow=_workflow(root.get("workflow")),
        api_version=plain_text(root.get("apiVersion")) or "noetl.io/v10",
        metadata=values(names, without=("name", "path")),
        keychain=_keychain(root.get("keychain")),
        executor=_executor(root.get("executor")),
        workload=values(root.get("workload")),
        workbook=workbook(root.get("workbook")),
        rollback=text(policy.get("rollback")) if isinstance(policy, MapNode) else None,
        triggers=(*_triggers(root.get("triggers")), *_notifications(root.get("notifications"))),
        at=root,
    )


def _triggers(node: Node | None) -> tuple[Trigger, ...]:
    if not isinstance(node, ListNode):
        return ()
    return tuple(
        Trigger(kind, name, values(item, without=(kind,)), item)
        for item in node
        if isinstance(item, MapNode)
        and (kind := trigger_kind(item)) is not None
        and (name := text(item.get(kind))) is not None
    )


def _notifications(node: Node | None) -> tuple[Trigger, ...]:
    if not isinstance(node, ListNode):
        return ()
    return tuple(
        Trigger(NOTIFICATION, name, values(item, without=("name",)), item)
        for item in node
        if isinstance(item, MapNode) and (name := text(item.get("name"))) is not None
    )


def _workflow(node: Node | None) -> tuple[Step, ...]:
    if not isinstance(node, ListNode):
        return ()
    return tuple(filter(None, (step(item) for item in node if isinstance(item, MapNode))))


def _executor(node: Node | None) -> Executor:
    if not isinstance(node, MapNode):
        return Executor()
    return Executor(
        profile=text(first(node, "profile", "kind")) or "auto",
        spec=settings(node.get("spec")),
        requires=optional(node.get("requires")),
        at=node,
    )


def _keychain(node: Node | None) -> tuple[Keychain, ...]:
    if isinstance(node, MapNode):
        return tuple(_entry(entry.key.text, entry.value) for entry in node)
    if not isinstance(node, ListNode):
        return ()
    entries: list[Keychain] = []
    for item in node:
        if isinstance(item, Scalar) and item.value is not None:
            entries.append(Keychain(item.text, {}, item))
        elif isinstance(item, MapNode):
            name = text(item.get("name"))
            if name is not None:
                entries.append(Keychain(name, values(item, without=("name",)), item))
    return tuple(entries)


def _entry(name: str, node: Node) -> Keychain:
    if isinstance(node, MapNode):
        return Keychain(name, values(node), node)
    if isinstance(node, Scalar) and node.value is not None:
        return Keychain(name, {"credential": value(node)}, node)
    return Keychain(name, {}, node)
