"""Task metrics of a server after real work: sinks, retries, errors, time-outs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.api.test_dlq import team
from tests.server.serving import WAITS, Served, playbook

pytestmark = pytest.mark.asyncio
BOOK = playbook(
    """
  - step: save
    tool: {kind: outbox, topic: orders, payload: {n: 1}}
    next: many
  - step: many
    loop: {in: [1, 2, 3, 4], iterator: n, spec: {policy: {failure: {mode: best_effort}}}}
    tool:
      - put: {kind: outbox, topic: items, payload: '{{ iter.n }}'}
      - check: {kind: python, input: {n: '{{ iter.n }}'}, code: "result = 1 // (n - 2)"}
      - after: {kind: outbox, topic: later, payload: '{{ iter.n }}'}
    next: flaky
  - step: flaky
    tool:
      kind: python
      code: "raise RetryableError('again')"
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 3, delay: 0}}]}}
    next: {spec: {mode: exclusive}, arcs: [{step: slow, when: "{{ event.name == 'step.failed' }}"}]}
  - step: slow
    tool: {kind: python, timeout_ms: 50, code: "import time; time.sleep(9)",
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: fail}}]}}}
""",
    "counted",
)


async def lines(served: Served, *names: str) -> list[str]:
    text = (await served.http.get("/metrics")).text
    return sorted(line for line in text.splitlines() if line.startswith(names) and "_created" not in line)


async def test_what_tasks_came_to_is_counted(tmp_path: Path) -> None:
    async with team(tmp_path) as (served, _):
        await served.until(await served.start(BOOK), "failed")
        waits = await served.start(WAITS)
        await served.until(waits, "waiting")
        await served.json("POST", f"/api/executions/{waits}/cancel", {"reason": "enough"})
        await served.until(waits, "cancelled")
        assert await lines(served, "noetl_sink_dispatch_total", "noetl_sink_tasks_completed_total") == [
            'noetl_sink_dispatch_total{sink="outbox:items",step="many",workflow="test/counted"} 4.0',
            'noetl_sink_dispatch_total{sink="outbox:later",step="many",workflow="test/counted"} 3.0',
            'noetl_sink_dispatch_total{sink="outbox:orders",step="save",workflow="test/counted"} 1.0',
            'noetl_sink_tasks_completed_total{ok="true",sink="outbox:items"} 4.0',
            'noetl_sink_tasks_completed_total{ok="true",sink="outbox:later"} 3.0',
            'noetl_sink_tasks_completed_total{ok="true",sink="outbox:orders"} 1.0',
        ]
        assert await lines(served, "noetl_sink_duration_seconds_count") == [
            'noetl_sink_duration_seconds_count{sink="outbox:orders",step="save",workflow="test/counted"} 1.0'
        ]
        assert await lines(served, "noetl_task_retries_total", "noetl_timeouts_total", "noetl_cancellations_total") == [
            'noetl_cancellations_total{what="execution",workflow="test/waits"} 1.0',
            'noetl_cancellations_total{what="step",workflow="test/waits"} 1.0',
            'noetl_task_retries_total{kind="python",step="flaky",workflow="test/counted"} 2.0',
            'noetl_timeouts_total{of="task",step="slow",workflow="test/counted"} 1.0',
        ]
        assert await lines(served, "noetl_plugin_errors_total") == [
            'noetl_plugin_errors_total{error_class="FatalError",kind="python"} 1.0',
            'noetl_plugin_errors_total{error_class="RetryableError",kind="python"} 3.0',
            'noetl_plugin_errors_total{error_class="TimeoutError",kind="python"} 1.0',
        ]
