"""What a condition gives when only some of what it reads is known."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import UNKNOWN, Envelope, compile_template

EVENT: dict[str, Any] = {"event.name": "step.done"}


@pytest.mark.parametrize(
    ("source", "known", "truth"),
    [
        ("{{ true }}", {}, True),
        ("{{ 1 == 2 }}", {}, False),
        ("{{ 'a' in ['a', 'b'] }}", {}, True),
        ("{{ 1 + 'a' }}", {}, None),
        ("{{ a }}", {}, None),
        ("{{ a or true }}", {}, True),
        ("{{ a and false }}", {}, False),
        ("{{ not (a and false) }}", {}, True),
        ("{{ a or false }}", {}, None),
        ("{{ a == a }}", {}, None),
        ("{{ (a and false) == 0 }}", {}, None),
        ("{{ now() }}", {}, None),
        ("{{ now() or true }}", {}, True),
        ("{{ done('x') and false }}", {}, False),
        ("{{ event.name == 'step.done' }}", EVENT, True),
        ("{{ event.name == 'step.failed' }}", EVENT, False),
        ("{{ event.name != 'step.failed' and ctx.ok }}", EVENT, None),
        ("{{ event.name == 'step.failed' and ctx.ok }}", EVENT, False),
        ("{{ ctx.ok and event.name == 'step.failed' }}", EVENT, False),
        ("{{ event.name in ['step.done', 'loop.done'] or ctx.ok }}", EVENT, True),
        ("{{ event.name == 'step.done' if ctx.ok else true }}", EVENT, True),
        ("{{ ctx.a if ctx.ok else true }}", EVENT, None),
        ("{{ 1 if event.name == 'step.done' else ctx.a }}", EVENT, True),
        ("{{ 1 if ctx.x }}", EVENT, None),
        ("{{ 0 if ctx.x }}", EVENT, False),
        ("{{ event.name is defined }}", EVENT, True),
        ("{{ event.name | upper == 'STEP.DONE' }}", EVENT, True),
        ("{{ event.name.startswith('step.') }}", EVENT, True),
        ("{{ event.name.x is defined }}", EVENT, False),
        ("{{ event }}", EVENT, None),
        ("{{ event.step }}", EVENT, None),
        ("{{ ctx.a.b == 1 }}", {"ctx.a": {"b": 1}}, True),
        ("{{ ctx.a.c is defined }}", {"ctx.a": {"b": 1}}, False),
        ("{{ ctx.a.b == 1 }}", {"ctx.a": {"b": 1}, "ctx.a.b": UNKNOWN}, None),
        ("{{ ctx.a }}", {"ctx.a": UNKNOWN}, None),
        ("{{ outcome.x == 1 }}", {"outcome": Envelope({"status": "ok", "result": {"x": 1}})}, True),
        ("{{ rows[0].x == 1 }}", {"rows[0]": {"x": 1}}, True),
        ("{{ ctx[k] }}", {"k": "a"}, None),
        ("{{ ctx.get('a', 5) }}", {}, None),
        ("{% if event.name == 'step.done' %}true{% else %}false{% endif %}", EVENT, True),
        ("{% if event.name == 'x' %}true{% else %}{{ false }}{% endif %}", EVENT, False),
        ("{% if ctx.a %}true{% endif %}", EVENT, None),
        ("{% for i in [1] %}{{ i }}{% endfor %}", {}, True),
        ("{% set x = 0 %}{{ x }}", {}, False),
        ("{{ 'a' }} and b", {}, None),
        ("true", {}, True),
        ("false", {}, False),
        ("ctx.a == 1", {}, None),
        ("{{ 'a' * 10**9 }}", {}, None),
        ("{{ x | nofilter or true }}", {}, True),
    ],
)  # fmt: skip
def test_decision(source: str, known: dict[str, Any], truth: bool | None) -> None:
    assert compile_template(source).decide(known) is truth


def test_the_unknown_has_a_name() -> None:
    assert repr(UNKNOWN) == "UNKNOWN"
