"""Measure the check of a playbook beside PyYAML's C loader on the same file.

    python bench/validate.py [--json]

The loader only builds plain data; the check reads, normalises, compiles every template and runs every rule.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import yaml

from noetl.dsl.validate import validate
from noetl.wiring.embedded import language_kinds

ROUNDS = 7
STEP = """\
  - step: step_{n}
    desc: Fetch page {n}, keep what matters, store it.
    loop:
      in: "{{{{ workload.cities }}}}"
      iterator: city
      spec: {{ mode: sequential }}
    tool:
      - fetch:
          kind: http
          method: GET
          url: "{{{{ workload.base }}}}/page/{n}?city={{{{ iter.city }}}}"
          spec:
            policy:
              rules:
                - when: "{{{{ outcome.status == 'error' and outcome.http.status in [429, 500, {n}] }}}}"
                  then: {{ do: retry, attempts: 5, backoff: exponential, delay: 2 }}
                - when: "{{{{ outcome.status == 'error' }}}}"
                  then: {{ do: fail }}
                - else:
                    then: {{ do: continue }}
      - shape:
          kind: python
          args: {{ rows: "{{{{ _prev.data }}}}", page: {n} }}
          code: |
            result = [row for row in rows if row["page"] == page]
      - store:
          kind: postgres
          auth: warehouse
          command: "INSERT INTO pages (n, body) VALUES ({n}, '{{{{ shape | tojson }}}}')"
    next:
      spec: {{ mode: exclusive }}
      arcs:
        - step: step_{m}
          when: "{{{{ event.name == 'loop.done' and outcome.status == 'ok' }}}}"
          args: {{ page: "{{{{ workload.first + {m} }}}}" }}
        - step: failed
          when: "{{{{ event.name == 'step.failed' }}}}"
"""
HEAD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: long, path: bench/long }
workload: { base: http://127.0.0.1:8080, cities: [Oslo, Lima], first: 1 }
workflow:
"""
TAIL = """\
  - step: step_{n}
    tool: {{ kind: noop }}
  - step: failed
    tool: {{ kind: noop, message: something failed }}
"""


def playbook(steps: int, first: int = 0) -> str:
    """Return a playbook of n steps, each with a loop, a policy and a router."""
    last = first + steps
    return HEAD + "".join(STEP.format(n=n, m=n + 1) for n in range(first, last)) + TAIL.format(n=last)


def measure(steps: int) -> dict[str, float]:
    text = playbook(steps)
    kinds = language_kinds()
    found = validate(text, "bench.yaml", kinds)
    if found:
        sys.exit(f"the benchmark's playbook must be clean, but: {found[0]}")
    cold: list[float] = []
    warm: list[float] = []
    loader: list[float] = []
    for number in range(1, ROUNDS + 1):
        fresh = playbook(steps, first=number * steps)  # templates that no cache has seen
        cold.append(_timed(partial(validate, fresh, "bench.yaml", kinds)))
        warm.append(_timed(lambda: validate(text, "bench.yaml", kinds)))
        loader.append(_timed(lambda: yaml.load(text, yaml.CSafeLoader)))
    return {
        "steps": steps,
        "lines": text.count("\n"),
        "cold_ms": median(cold) * 1000,
        "warm_ms": median(warm) * 1000,
        "loader_ms": median(loader) * 1000,
        "cold_ratio": median(cold) / median(loader),
        "warm_ratio": median(warm) / median(loader),
    }


def _timed(call: Callable[[], object]) -> float:
    gc.collect()  # no call pays for the garbage of the previous one
    begin = perf_counter()
    call()
    return perf_counter() - begin


def main() -> None:
    results = [measure(steps) for steps in (100, 1000)]
    if "--json" in sys.argv[1:]:
        print(json.dumps(results, indent=2))
        return
    print("steps  lines   cold ms  warm ms  loader ms  cold/loader  warm/loader")
    for row in results:
        print(
            f"{row['steps']:5.0f}  {row['lines']:5.0f}  {row['cold_ms']:8.1f} {row['warm_ms']:8.1f}  {row['loader_ms']:9.1f}"
            f"  {row['cold_ratio']:11.1f}  {row['warm_ratio']:11.1f}"
        )
    print(f"1000 steps against 100, warm: {results[1]['warm_ms'] / results[0]['warm_ms']:.1f}x")


if __name__ == "__main__":
    main()
