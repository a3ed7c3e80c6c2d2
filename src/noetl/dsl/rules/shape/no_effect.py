"""NOE138 reports a key that is read and has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, at, example
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.normalize.settings import POLICIES, effective
from noetl.dsl.tree.normalize.subscription import is_subscription, without_effect

GOOD = example("""\
executor:
  profile: local
workflow:
  - step: greet
    tool: { kind: noop, message: Good morning }
""")
_SOURCE = "A server polls the source, and remembers its position by itself; remove the key."
_MODE = "The first rule that matches decides, in any case; remove the key."
_LEASE = "A worker renews its leases by itself, as the settings of the server say; remove the key."
_SETTINGS = {
    "defaults": "Write settings of tasks under `spec`; `noetl explain spec` lists them.",
    "results": "Write how results are stored under `spec.result`; `noetl explain result` lists the keys.",
}


def check(subject: CheckContext) -> Iterator[Finding]:
    root = subject.root
    if root is None:
        return
    if is_subscription(root):
        for entry in without_effect(root):
            yield at(entry.key, f"'{entry.key.text}' has no effect.", _SOURCE)
    yield from _key(root.get("executor"), "version", "`executor.version`", "NoETL runs every version; remove the key.")
    mcp = "Playbooks are not offered as tools of an MCP server yet; remove the key, or leave it for later."
    yield from _key(root.get("metadata"), "exposes_as_mcp", "`metadata.exposes_as_mcp`", mcp)
    yield from _without_tool(root.get("workflow"))
    for holder in (*_holders(root), *_specs(root)):
        for name in ("lease_seconds", "heartbeat_seconds"):
            yield from _key(holder.get("frame"), name, f"`{name}` of a frame", _LEASE)
    for spec in _specs(root):
        policy = spec.get("policy")
        if not isinstance(policy, MapNode):
            continue
        yield from _key(policy.get("admit"), "mode", "`mode` of a gate", _MODE)
        for name, known in POLICIES.items():
            given = policy.get(name)
            if isinstance(given, Scalar):
                yield from _key(policy, name, f"`policy.{name}` as a single word", _SETTINGS[name])
            used = {id(entry.key) for entry in effective(given, known)}
            for entry in given if isinstance(given, MapNode) else ():
                if id(entry.key) not in used:
                    message = f"'{entry.key.text}' in `policy.{name}` has no effect."
                    yield at(entry.key, message, _SETTINGS[name])


def _without_tool(workflow: Node | None) -> Iterator[Finding]:
    """Yield settings of a result on steps that give none."""
    for step in workflow if isinstance(workflow, ListNode) else ():
        if isinstance(step, MapNode) and not isinstance(step.get("tool"), ListNode | MapNode):
            for name in ("assert", "output"):
                what = f"`{name}` of a step without a tool"
                yield from _key(step, name, what, "Give the step a `tool`, or move the key to the step that has it.")


def _key(node: Node | None, name: str, what: str, fix: str) -> Iterator[Finding]:
    entry = _entry(node, name)
    if entry is not None:
        yield at(entry.key, f"{what} has no effect.", fix)


def _entry(node: Node | None, name: str) -> Entry | None:
    return node.entry(name) if isinstance(node, MapNode) and name in node else None


def _specs(root: MapNode) -> Iterator[MapNode]:
    """Yield every `spec` that may hold a policy."""
    for holder in _holders(root):
        spec = holder.get("spec")
        if isinstance(spec, MapNode):
            yield spec


def _holders(root: MapNode) -> Iterator[MapNode]:
    workflow, executor = root.get("workflow"), root.get("executor")
    if isinstance(executor, MapNode):
        yield executor
    for step in workflow if isinstance(workflow, ListNode) else ():
        if isinstance(step, MapNode):
            yield step
            loop = step.get("loop")
            if isinstance(loop, MapNode):
                yield loop
            yield from _tasks(step.get("tool"))
    yield from _tasks(root.get("workbook"))


def _tasks(node: Node | None) -> Iterator[MapNode]:
    """Yield tasks in any form: as they are, below a label, below `tool`."""
    if isinstance(node, ListNode):
        for item in node:
            yield from _tasks(item)
    elif isinstance(node, MapNode):
        if "kind" in node:
            yield node
        for entry in node if "kind" not in node else ():
            yield from _tasks(entry.value)


RULE = Rule(
    code="NOE138",
    name="no-effect",
    severity="hint",
    summary="A key is read, so that the playbook runs, and has no effect.",
    why="Playbooks written for other versions have keys that this one reads and does not act on: the version of the "
    "runtime, the mode of a gate, settings of a policy that are none here.",
    fix="Remove the key, or write the setting where the message says.",
    bad=GOOD.replace("profile: local", "profile: local\n  version: noetl-runtime/1"),
    good=GOOD,
    check=check,
)
