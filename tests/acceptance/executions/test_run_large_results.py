"""Large results with the real command: a run that passes 5 MB on, and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.acceptance.run import noetl

PLAYBOOK = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: large, path: tests/large}
executor: {spec: {limits: {max_result_bytes: 8000000}}}
workload: {rows: 50000}
workflow:
  - step: make
    tool:
      kind: python
      input: {rows: "{{ workload.rows }}"}
      code: |
        result = {"total": rows, "rows": [{"id": i, "text": "x" * 80} for i in range(rows)]}
    next:
      spec: {mode: exclusive}
      arcs: [{step: read, when: "{{ outcome.result.total > 10 }}", args: {last: "{{ make.total }}"}}]
  - step: read
    tool:
      kind: noop
      result: {row: "{{ make.rows[3].id }}", count: "{{ make.rows | length }}", last: "{{ args.last }}", ref: "{{ make._ref }}"}
"""


def run(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    (folder / "large.yaml").write_text(PLAYBOOK)
    done = noetl("run", "large.yaml", "--json", "--store", "noetl.db", *arguments, cwd=folder)
    assert done.out, done.err
    told: dict[str, Any] = json.loads(done.out.splitlines()[-1])
    return done.code, told


def test_the_next_step_reads_a_part_of_five_megabytes(tmp_path: Path) -> None:
    code, told = run(tmp_path)
    assert (code, told["status"]) == (0, "completed"), told
    ref = f"noetl://execution/{told['execution_id']}/step/make/task/make_task/run/1/attempt/1"
    assert told["result"] == {"row": 3, "count": 50000, "last": 50000, "ref": ref}
    sizes = [path.stat().st_size for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert max(sizes) > 5_000_000
    assert (tmp_path / "noetl.db").stat().st_size < 1_000_000


def test_a_result_above_the_limit_fails_the_step_and_says_what_to_do(tmp_path: Path) -> None:
    code, told = run(tmp_path, "--set", "rows=100000")
    assert (code, told["status"]) == (1, "failed"), told
    assert told["error"]["code"] == "RESULT_TOO_LARGE"
    assert "limits.max_result_bytes" in told["error"]["message"]
