"""A signal that nothing in a playbook waits for gets a warning."""

from __future__ import annotations

import pytest

from noetl.engine.plan.signals import unknown_signal
from noetl.testing.play import read
from tests.unit.engine.given import book

WAITS = book("- {step: a, tool: {kind: wait, signal: approved}}")
GATE = book("""
- {step: s, tool: {kind: noop}, next: g}
- step: g
  spec: {policy: {admit: {rules: [{when: "WHEN", then: {allow: true}}]}}}
  tool: {kind: noop}
""")
EVENT = "{{ event.name == 'signal.received' and event.payload.name == 'go' }}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (WAITS, "approved"),
        (WAITS.replace("approved", '"paid-{{ workload.n }}"'), "paid-1"),
        (GATE.replace("WHEN", "{{ ctx.signals.go }}"), "go"),
        (GATE.replace("WHEN", "{{ ctx.signals['go now'] }}"), "go now"),
        (GATE.replace("WHEN", "{{ ctx.signals }}"), "anything"),
        (GATE.replace("WHEN", EVENT), "go"),
    ],
)
def test_a_signal_that_is_named_gets_no_warning(text: str, name: str) -> None:
    assert unknown_signal(read(text), name) is None


@pytest.mark.parametrize("text", [GATE.replace("WHEN", "{{ ctx.signals.go }}"), GATE.replace("WHEN", EVENT)])
def test_a_gate_names_its_signals_only(text: str) -> None:
    assert "names no signal `stop`; it names `go`." in str(unknown_signal(read(text), "stop"))


def test_the_warning_names_the_nearest_signal() -> None:
    assert unknown_signal(read(WAITS), "aproved") == (
        "Playbook `tests/test` names no signal `aproved`; it names `approved`. Did you mean 'approved'?"
    )
    nothing = unknown_signal(read(book("- {step: a, tool: {kind: noop}}")), "go")
    assert nothing == "Playbook `tests/test` names no signal `go`; nothing in it waits for a signal."
