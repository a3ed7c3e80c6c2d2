"""Playbooks that were written for other versions, run as they are."""

from __future__ import annotations

import json

from tests.acceptance.running import Folder

ODD = """
    - step: one
      colour: blue
      tool: { kind: noop, result: { n: 7 }, shade: 3 }
"""
WILD = """
    - step: start
      tool:
        - { name: many, kind: python, libs: [PyYAML], script: { source: { type: inline, code: "result = {'rows': list(range(9000)), 'n': 9000, 'y': yaml.safe_load('1')}" } } }
      output: { output_select: [n, y], store: kv, inline_max_bytes: 64 }
      next: { spec: { on_no_match: quiet }, arcs: [{ step: load }] }
    - step: load
      tool: { kind: artifact, action: get }
      input: { result_ref: "{{ start._ref }}" }
      next: child
    - step: child
      tool:
        - { kind: playbook, task: double, path: test/child, payload: { n: "{{ start.n }}" } }
        - { kind: playbook, task: again, path: test/child, payload: "{{ {'n': 2} }}" }
      next: check
    - step: check
      tool:
        kind: python
        assert: { expects: [n, id], returns: [same, rows] }
        input: { n: "{{ child.double.n }}", id: "{{ job.execution_id }}", more: "{{ [child.again.n, load.data.rows | length, start.y] }}" }
        code: "result = {'same': id == execution_id, 'rows': [n, *more]}"
"""


def test_words_of_other_versions_mean_what_they_say(folder: Folder) -> None:
    child = '- step: twice\n  tool: { kind: noop, result: { n: "{{ workload.n * 2 }}" } }'
    folder.playbook(child, name="child", workload={"n": 0})
    ran = folder.run(folder.playbook(WILD))
    assert (ran.status, ran.result) == ("completed", {"same": True, "rows": [18000, 4, 9000, 1]})


def test_unknown_keys_are_left_out_where_they_are_tolerated(folder: Folder) -> None:
    file = folder.playbook(ODD)
    refused = folder.call("run", file)
    assert (refused.code, "colour" in refused.err, "shade" in refused.err) == (2, True, True)
    ran = folder.call("run", file, "--tolerant", "--json")
    assert (ran.code, json.loads(ran.out)["result"]) == (0, {"n": 7})
    assert "2 warnings" in ran.err


def test_a_subscription_is_not_run_but_registered(folder: Folder) -> None:
    text = (
        "apiVersion: noetl.io/v2\nkind: Subscription\nmetadata: {name: s, path: test/s}\n"
        "spec: {source: folder, stream: /srv/drop, dispatch: test/play}\n"
    )
    (folder.path / "sub.yaml").write_text(text)
    done = folder.call("run", "sub.yaml")
    assert (done.code, "`noetl register sub.yaml`" in done.err) == (2, True)
    assert folder.call("validate", "sub.yaml").code == 0
