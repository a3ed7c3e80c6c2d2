"""Lower a document of `kind: Subscription` to a playbook with one trigger.

Its only step runs the playbook of `dispatch`, for starts by hand; the trigger starts that playbook itself. Values keep
their positions. A source that cannot be read here gives no trigger. Tested in tests/unit/dsl/tree/test_subscription.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar

KIND: Final = "Subscription"
# Other names of the sources that a server reads, and sources that none reads yet.
SOURCES: Final = {
    "listen": "listen", "pg_notify": "listen", "postgres_notify": "listen", "pg_listen": "listen", "notify": "listen",
    "table": "table", "postgres": "table", "postgresql": "table", "pg": "table", "postgres_table": "table",
    "folder": "folder", "file": "folder", "files": "folder", "filesystem": "folder", "directory": "folder",
    "http": "http", "https": "http", "rest": "http", "http_poll": "http", "api": "http",
}  # fmt: skip
OTHER_SOURCES: Final = frozenset(
    {"nats", "nats_jetstream", "jetstream", "kafka", "redpanda", "pubsub", "gcp_pubsub", "google_pubsub", "sqs", "aws_sqs",
     "sns", "kinesis", "rabbitmq", "amqp", "redis", "redis_streams", "mqtt", "eventhub", "event_hubs", "servicebus",
     "pulsar", "websocket", "sse", "webhook", "imap", "email", "s3", "gcs", "azure", "snowflake", "mysql", "mongodb",
     "debezium", "cdc", "grpc", "sftp", "ftp"}
)  # fmt: skip
_MAIN: Final = {"listen": "channel", "table": "table", "folder": "folder", "http": "url"}  # field that `stream` names
_FIELDS: Final = {  # fields of a source, and their other names
    "channel": ("channel", "subject", "topic"),
    "table": ("table",),
    "key": ("key", "key_column", "id_column", "cursor_column"),
    "begin": ("begin", "start", "start_from", "deliver_policy", "offset_reset"),
    "folder": ("folder", "path", "directory"),
    "pattern": ("pattern", "glob", "filter"),
    "after": ("after", "on_done"),
    "format": ("format", "content"),
    "url": ("url", "endpoint"),
    "params": ("params", "query"),
    "items": ("items",),
    "id": ("id", "message_id"),
    "cursor": ("cursor",),
    "every": ("every", "interval", "poll_interval", "interval_s", "poll_interval_s", "interval_seconds", "poll_seconds"),
}  # fmt: skip
_WORDS: Final = {
    "begin": {"earliest": "first", "all": "first", "beginning": "first", "latest": "now", "new": "now", "last": "now"},
    "after": {"archive": "keep", "remove": "delete", "ack": "delete"},
}
_PAYLOAD: Final = ("payload", "input", "workload", "args")
_DISPATCH: Final = frozenset({"playbook", "path", "version", *_PAYLOAD})
_SIGNS: Final = re.compile(r"[^A-Za-z0-9._-]+")
_INACTIVE: Final = frozenset({"manual", "paused", "disabled", "inactive", "off", "false", "never", "suspended"})


def is_subscription(root: Node | None) -> bool:
    """Return whether a document is a subscription."""
    kind = root.get("kind") if isinstance(root, MapNode) else None
    return isinstance(kind, Scalar) and kind.text == KIND


def source_of(root: MapNode) -> tuple[str, Node | None]:
    """Return the source as written, and where."""
    spec = root.get("spec")
    given = spec.get("source") if isinstance(spec, MapNode) else None
    if isinstance(given, MapNode):
        given = next((found for name in ("kind", "type", "name") if (found := given.get(name)) is not None), None)
    return (given.text if isinstance(given, Scalar) and given.value is not None else ""), given


def as_playbook(root: MapNode) -> MapNode:
    """Return the playbook that a subscription means."""
    spec = root.get("spec")
    spec = spec if isinstance(spec, MapNode) else MapNode(root.start, root.end, ())
    path, version, payload = _dispatch(spec)
    at = path or root
    task = [_entry("kind", _text("playbook", at))]
    if path is not None:
        task += [_entry("path", path), _entry("payload", _text("{{ workload }}", at))]
    task += [_entry("version", version)] if version is not None else []
    step = [_entry("step", _text("dispatch", at)), _entry("tool", _map(task, at))]
    parts = [entry for entry in root.entries if entry.key.text in ("apiVersion", "metadata")]
    parts += [_entry("kind", _text("Playbook", root)), _entry("workflow", _list([_map(step, at)], at))]
    made = trigger(root)
    if made is not None:
        own = [entry for entry in made.entries if entry.key.text != "payload"]
        own += [_entry("payload", payload)] if payload is not None else []
        parts.append(_entry("triggers", _list([_map(own, made)], made)))
    return _map(parts, root)


def trigger(root: MapNode) -> MapNode | None:
    """Return the trigger that a subscription means, if its source can be read."""
    spec, name = root.get("spec"), _name(root)
    given, source_at = source_of(root)
    if not isinstance(spec, MapNode) or source_at is None or name is None:
        return None
    source = SOURCES.get(given.lower(), "" if given.lower() in OTHER_SOURCES else given)
    if not source:
        return None
    found = dict(_given(spec, source))
    if source == "table" and "table" not in found and "channel" in found:
        source = "listen"
    path, version, _ = _dispatch(spec)
    auth = spec.get("auth") or spec.get("credential")
    entries = [_entry("subscription", name), _entry("source", _text(source, source_at))]
    entries += [_entry("auth", _name_of_auth(auth))] if auth is not None else []
    entries += [_entry(field, node) for field, node in found.items()]
    if path is not None:
        target = [_entry("playbook", path), *([_entry("version", version)] if version is not None else [])]
        entries.append(_entry("dispatch", _map(target, path)))
    if is_inactive(spec.get("activation")):
        at = spec.get("activation") or root
        entries.append(_entry("paused", Scalar(at.start, at.end, True, "true")))
    return _map(entries, spec)


def is_inactive(node: Node | None) -> bool:
    """Return whether an activation means that the subscription is registered paused."""
    if isinstance(node, MapNode):
        flags = (node.get("enabled"), node.get("active"))
        off = any(isinstance(flag, Scalar) and flag.value is False for flag in flags)
        return off or is_inactive(node.get("mode") or node.get("state"))
    return isinstance(node, Scalar) and (node.value is False or node.text.lower() in _INACTIVE)


def without_effect(root: MapNode) -> Iterator[Entry]:
    """Yield the settings of a subscription that are read and change nothing."""
    spec = root.get("spec")
    if not isinstance(spec, MapNode):
        return
    known = {name for names in _FIELDS.values() for name in names} | {"auth", "credential"}
    if "mode" in spec:
        yield _whole(spec, "mode")
    for holder in ("source", "stream", "consumer", "runtime", "dedup"):
        node = spec.get(holder)
        if isinstance(node, MapNode):
            own = known | {"kind", "type", "name"} if holder == "source" else known
            yield from (entry for entry in node if entry.key.text not in own and entry.key.text != "enabled")
        elif node is not None and holder == "consumer":
            yield _whole(spec, holder)
    dispatch = spec.get("dispatch")
    if isinstance(dispatch, MapNode):
        yield from (entry for entry in dispatch if entry.key.text not in _DISPATCH)


def _given(spec: MapNode, source: str) -> Iterator[tuple[str, Node]]:
    """Yield the fields of the source, wherever they are written; the first place wins."""
    seen: set[str] = set()
    for holder in (spec, *(spec.get(name) for name in ("source", "stream", "consumer", "runtime"))):
        for field, names in _FIELDS.items():
            node = next((found for name in names if isinstance(holder, MapNode) and (found := holder.get(name))), None)
            if node is not None and field not in seen:
                seen.add(field)
                yield field, _word(field, node)
    stream = spec.get("stream")
    if isinstance(stream, Scalar) and stream.value is not None and _MAIN.get(source) not in {None, *seen}:
        seen.add(_MAIN[source])
        yield _MAIN[source], stream
    dedup = spec.get("dedup")
    key = dedup.get("key") if isinstance(dedup, MapNode) else dedup
    if source == "http" and "id" not in seen and isinstance(key, Scalar) and isinstance(key.value, str):
        yield "id", key


def _word(field: str, node: Node) -> Node:
    words = _WORDS.get(field, {})
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.lower() in words:
        return _text(words[node.value.lower()], node)
    return node


def _dispatch(spec: MapNode) -> tuple[Node | None, Node | None, Node | None]:
    """Return path, version and payload of the playbook to start."""
    given = spec.get("dispatch")
    if not isinstance(given, MapNode):
        path = given if isinstance(given, Scalar) and given.value is not None else None
        return path, None, spec.get("payload")
    payload = next((found for name in _PAYLOAD if (found := given.get(name)) is not None), spec.get("payload"))
    return given.get("playbook") or given.get("path"), given.get("version"), payload


def _name(root: MapNode) -> Node | None:
    """Return the name of the document as that of a trigger."""
    metadata = root.get("metadata")
    given = metadata.get("name") if isinstance(metadata, MapNode) else None
    if not isinstance(given, Scalar) or given.value is None:
        return None
    return _text(_SIGNS.sub("_", given.text).strip("_.-") or "subscription", given)


def _name_of_auth(node: Node) -> Node:
    if isinstance(node, MapNode):
        names = ("credential", "key", "name", "auth")
        return next((found for name in names if (found := node.get(name)) is not None), node)
    return node


def _whole(node: MapNode, name: str) -> Entry:
    entry = node.entry(name)
    assert entry is not None
    return entry


def _entry(name: str, node: Node) -> Entry:
    return Entry(_text(name, node), node)


def _text(text: str, at: Node) -> Scalar:
    value: Any = text
    return Scalar(at.start, at.end, value, text)


def _map(entries: list[Entry], at: Node) -> MapNode:
    return MapNode(at.start, at.end, tuple(entries))


def _list(items: list[Node], at: Node) -> ListNode:
    return ListNode(at.start, at.end, tuple(items))
