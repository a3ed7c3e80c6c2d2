"""Compute which steps may have ended when a step runs.

A gate that waits for a step orders the two without an arc. Tested in tests/unit/dsl/analysis/test_step_order.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from noetl.dsl.analysis.net import Net, closure
from noetl.dsl.analysis.scopes import step_writes
from noetl.dsl.tree.playbook import Step


def ended_before(net: Net, gates: Mapping[str, Iterable[str]]) -> tuple[int, ...]:
    """Return the steps that may have ended when each step starts, as bit sets.

    `gates` names what the gate of a step reads: steps, and keys of `ctx`, which stand for the steps that write them.
    """
    sources = [{edge.source for edge in edges} for edges in net.into]
    writers = _writers(net.steps) if gates else {}
    for name, words in gates.items():
        if name in net.index:
            for word in words:
                waited = {net.index[word]} if word in net.index else writers.get(word, set())
                sources[net.index[name]] |= waited - {net.index[name]}
    _, before = closure([sorted(direct) for direct in sources])
    everything = (1 << len(net.steps)) - 1
    last = {net.index[step.compensate] for step in net.steps if step.compensate in net.index}
    if net.final is not None:
        last.add(net.final)
    return tuple(everything if number in last else bits for number, bits in enumerate(before))


def _writers(steps: Iterable[Step]) -> dict[str, set[int]]:
    writers: dict[str, set[int]] = {}
    for number, step in enumerate(steps):
        for write in step_writes(step):
            if write.scope == "ctx":
                writers.setdefault(write.key.split(".", 1)[0], set()).add(number)
    return writers
