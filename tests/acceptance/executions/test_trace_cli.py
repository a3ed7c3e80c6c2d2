"""`noetl trace` as a process: a tree, JSON, a receiver; and what has none of them."""

from __future__ import annotations

import json

from noetl.trace_context import trace_id_of
from tests.acceptance.running import Folder
from tests.observe.receiving import places

FLOW = """
- { step: one, tool: { kind: noop, result: 1 }, next: two }
- { step: two, tool: { kind: python, code: "raise ValueError('broken')" } }
"""


def failed(folder: Folder) -> str:
    """Run a playbook that fails; return the execution."""
    assert folder.call("run", folder.playbook(FLOW)).code == 1
    found = json.loads(folder.call("runs", "--json").out.splitlines()[0])
    return str(found["execution_id"])


def test_the_trace_of_an_ended_run_is_a_tree(folder: Folder) -> None:
    started = failed(folder)
    shown = folder.call("trace", started, NOETL_TRACING_URL="https://jaeger.example.com/trace/{trace_id}")
    lines = shown.out.splitlines()
    assert lines[0] == f"trace {trace_id_of(started)}"
    assert lines[1].startswith("server.execution")
    assert any(line.startswith("    worker.plugin.python step_id=two task=two_task attempt=1") for line in lines)
    assert lines[-1].endswith("✗ FatalError: ValueError: broken (line 1 of the code)")
    assert shown.err == f"https://jaeger.example.com/trace/{trace_id_of(started)}\n"


def test_the_trace_is_printed_as_json_and_sent_to_a_receiver(folder: Folder) -> None:
    started = failed(folder)
    printed = [json.loads(line) for line in folder.call("trace", started, "--json").out.splitlines()]
    with places() as found:
        sent = folder.call("trace", started, "--to", found.receiver.url)
        assert (sent.code, sent.out) == (0, "")
        assert f"sent {len(printed)} spans of trace {trace_id_of(started)}" in sent.err
        got = {span.span_id.hex(): span.name for span in found.receiver.of(trace_id_of(started))}
        again = folder.call("trace", "last", NOETL_TRACING_ENDPOINT=found.receiver.url)
        assert again.code == 0
        assert len(found.receiver.spans) == 2 * len(printed)
    assert got == {span["span_id"]: span["name"] for span in printed}


def test_a_receiver_that_is_not_there_is_an_error(folder: Folder) -> None:
    started = failed(folder)
    lost = folder.call("trace", started, "--to", "http://127.0.0.1:1")
    assert lost.code != 0
    assert "Traces cannot be sent: http://127.0.0.1:1: " in lost.err
    wrong = folder.call("trace", started, "--to", "jaeger:4318")
    assert (wrong.code, wrong.err) == (2, "noetl: --to is 'jaeger:4318'. Write a URL such as http://localhost:4318.\n")
    unknown = folder.call("trace", "123456789012345678")
    assert unknown.code == 2
