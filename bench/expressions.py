"""Measure the evaluation of conditions beside Jinja2's sandboxed environment.

    python bench/expressions.py [--json] [--seconds 1.0]

Rates depend on the machine and its load; compare the ratios.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from jinja2 import ChainableUndefined
from jinja2.sandbox import SandboxedEnvironment

from noetl.expr import compile_template
from noetl.expr.template import Template

CONDITION = "outcome.status == 'error' and outcome.http.status in [429,500]"
EXPRESSIONS = {
    "condition": CONDITION,
    "missing": "outcome.error.code == 'x' or ctx.retries < 3",
    "default": "ctx.limit | default(10)",
    "arithmetic": "ctx.page * 100 + ctx.offset",
    "filters": "rows | selectattr('ok') | map(attribute='id') | list",
}
TEXT = "https://{{ ctx.host }}/v1/items?page={{ ctx.page }}&size={{ ctx.size | default(50) }}"
DATA: dict[str, Any] = {
    "outcome": {"status": "error", "http": {"status": 429}},
    "ctx": {"retries": 1, "page": 3, "offset": 7, "host": "127.0.0.1"},
    "rows": [{"id": index, "ok": index % 2 == 0} for index in range(20)],
}


def rate(run: Callable[[], Any], seconds: float) -> float:
    """Runs per second: the best of three, as the others were disturbed."""
    count = 64
    while True:
        start = time.perf_counter()
        for _ in range(count):
            run()
        if time.perf_counter() - start > seconds / 20:
            break
        count *= 2
    best = 0.0
    for _ in range(3):
        end, done, start = time.perf_counter() + seconds / 3, 0, time.perf_counter()
        while time.perf_counter() < end:
            for _ in range(count):
                run()
            done += count
        best = max(best, done / (time.perf_counter() - start))
    return best


def measure(seconds: float) -> list[dict[str, Any]]:
    """One row per expression: our rate, the sandbox's, and the ratio."""
    sandbox = SandboxedEnvironment(undefined=ChainableUndefined)
    rows: list[dict[str, Any]] = []
    for name, expression in EXPRESSIONS.items():
        template = compile_template("{{ " + expression + " }}")
        theirs = sandbox.compile_expression(expression, undefined_to_none=False)
        rows.append(row(name, expression, partial(template.evaluate, DATA), partial(theirs, **DATA), seconds))
    ours, rendered = compile_template(TEXT), sandbox.from_string(TEXT)
    rows.append(row("text", TEXT, lambda: ours.evaluate(DATA), lambda: rendered.render(DATA), seconds))
    source = "{{ " + CONDITION + " }}"
    rows.append(row("compile", source, lambda: Template(source), lambda: sandbox.from_string(source), seconds))
    return rows


def row(name: str, source: str, ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """Both rates for one expression."""
    mine, other = rate(ours, seconds), rate(theirs, seconds)
    return {
        "name": name,
        "source": source,
        "per_second": round(mine),
        "sandbox_per_second": round(other),
        "ratio": round(mine / other, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="Print one JSON document.")
    parser.add_argument("--seconds", type=float, default=0.6, help="Seconds of each measurement. [default: 0.6]")
    options = parser.parse_args()
    rows = measure(options.seconds)
    if options.json:
        print(json.dumps({"benchmark": "expressions", "rows": rows}, indent=2))
        return
    print(f"{'expression':<12}{'NoETL /s':>14}{'Jinja2 sandbox /s':>20}{'ratio':>9}")
    for found in rows:
        print(f"{found['name']:<12}{found['per_second']:>14,}{found['sandbox_per_second']:>20,}{found['ratio']:>8.1f}×")


if __name__ == "__main__":
    main()
