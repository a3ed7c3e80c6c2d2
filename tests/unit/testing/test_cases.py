"""Cases run on the real engine with mocks and virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

from noetl.testing.cases.checks.coverage import Coverage
from noetl.testing.cases.files.read import Given, read_tests
from noetl.testing.cases.player.player import Stage
from noetl.testing.cases.runner import CaseResult, run_cases
from noetl.testing.scenario import read_playbook
from noetl.wiring.embedded import language_kinds

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: NAME, path: test/NAME}\n"
FETCH = """
workload: {n: 1}
workflow:
  - step: fetch
    tool: {kind: http, url: "http://127.0.0.1/{{ workload.n }}"}
    set: {ctx.got: "{{ fetch.x }}"}
    next:
      arcs:
        - {step: good, when: "{{ event.name == 'step.done' and ctx.got > 1 }}"}
        - {step: bad, when: "{{ event.name == 'step.failed' }}"}
  - {step: good, tool: {kind: noop, result: "{{ ctx.got }}"}}
  - {step: bad, tool: {kind: noop, result: bad}}
"""


def stage(*texts: str) -> Stage:
    names = ["play", *(f"child{number}" for number in range(1, len(texts)))]
    made = []
    for name, text in zip(names, texts, strict=True):
        whole = HEAD.replace("NAME", name) + dedent(text)
        made.append(SimpleNamespace(tree=read_playbook(whole), content=whole.encode()))
    return Stage(made[0], made[1:], language_kinds())


def plainly(given: Given) -> tuple[Given, Mapping[str, Any]]:
    return given, {}


def run(tests: str, *playbooks: str, coverage: Coverage | None = None) -> list[CaseResult]:
    found = read_tests(dedent(tests).encode(), "play.test.yaml", "play.test.yaml")
    assert found.troubles == []
    made = stage(*playbooks)
    if coverage is not None:
        coverage.know(made.main.tree, "play.yaml", made.main.content)
    return run_cases(found, made, plainly, covered=coverage)


def told(result: CaseResult) -> list[tuple[int, str, str, str]]:
    return [(one.start.line, one.path, one.expected, one.found) for one in result.failures]


def test_mocks_answer_and_expectations_hold() -> None:
    [result] = run(
        """
        tests:
          - name: good
            workload: {n: 7}
            mocks: {fetch: {ok: {x: 3}}}
            expect:
              status: completed
              result: 3
              ctx: {got: 3}
              route: [fetch, good]
              visits: [good]
              avoids: [bad]
              failed: []
              calls: {fetch: [{url: "http://127.0.0.1/7"}], good: 1}
              events: [step.done, {type: next.evaluated, step: fetch, taken: [0]}, playbook.finished]
        """,
        FETCH,
    )
    assert (result.status, told(result)) == ("passed", [])


def test_every_difference_is_told_with_its_line() -> None:
    [result] = run(
        """\
        tests:
          - name: wrong
            mocks: {fetch: {ok: {x: 3}}}
            expect:
              status: failed
              result: 4
              ctx: {got: "{{ value > 5 }}", more: 1}
              route: [fetch, bad]
              avoids: [good]
              failed: [fetch]
              calls: {fetch: 2}
              events: {step.failed: 1}
              error: timeout
        """,
        FETCH,
    )
    assert told(result) == [
        (5, "status", "failed", "completed"),
        (6, "result", "4", "3"),
        (7, "ctx.got", "{{ value > 5 }}", "3"),
        (7, "ctx.more", "1", "nothing"),
        (8, "route", "fetch bad", "fetch good"),
        (9, "avoids", "good never runs", "route: fetch good"),
        (10, "failed", '["fetch"]', "[]"),
        (11, "calls.fetch", "2 calls", "1 calls"),
        (12, "events.step.failed", "1", "0"),
        (13, "error.kind", '"timeout"', "nothing"),
    ]


def test_attempts_come_one_after_another_and_a_busy_service_is_asked_again() -> None:
    busy = "{error: {kind: server_error, retryable: true, message: busy}}"
    [result] = run(
        f"""
        tests:
          - name: again
            mocks: {{fetch: [{busy}, {busy}, {{ok: {{x: "{{{{ attempt * 10 }}}}"}}}}]}}
            expect: {{status: completed, result: 30, calls: {{fetch: 3}}, events: {{task.attempt.failed: 2}}}}
        """,
        FETCH,
    )
    assert told(result) == []


def test_a_call_without_a_mock_is_told_and_nothing_is_really_called() -> None:
    [result] = run("tests: [{name: one, expect: {route: [fetch, bad]}}]", FETCH)
    assert result.status == "failed"
    [found] = result.failures
    assert found.found == "`fetch` (http) was called, but has no mock"


def test_items_of_a_loop_have_outcomes_of_their_own() -> None:
    [result] = run(
        """
        tests:
          - name: items
            mocks: {work: {items: {1: [{error: {kind: timeout, retryable: true}}, {ok: second}], else: {ok: "i{{ index }}"}}}}
            expect: {status: completed, result: {results: [i0, second, i2]}, calls: {work: 4}}
        """,
        """
        workflow:
          - {step: work, loop: {in: [a, b, c], iterator: x}, tool: {kind: http, url: "http://127.0.0.1/{{ x }}"}}
        """,
    )
    assert told(result) == []


def test_thirty_days_of_waiting_take_milliseconds_and_messages_come_at_their_times() -> None:
    playbook = """
    workflow:
      - {step: rest, tool: {kind: sleep, seconds: 2592000}, next: ask}
      - {step: ask, tool: {kind: wait, signal: answer, timeout_s: 864000}, next: [{step: done}]}
      - {step: done, tool: {kind: noop, result: "{{ ask.text }}"}}
    """
    results = run(
        """
        tests:
          - name: answered
            messages: [{at: 31d, signal: answer, data: {text: "yes"}}]
            expect: {status: completed, result: "yes", took: "{{ 2678400 <= value < 2678402 }}"}
          - name: too late
            expect: {status: failed, error: timeout, took: "{{ 3456000 <= value < 3456003 }}"}
        """,
        playbook,
    )
    assert [told(result) for result in results] == [[], []]


def test_a_tool_that_hangs_is_ended_by_its_time_out() -> None:
    [result] = run(
        'tests: [{name: one, mocks: {fetch: {hang: true}}, expect: {status: failed, error: timeout, took: "{{ value >= 3600 }}"}}]',
        "workflow: [{step: fetch, tool: {kind: http, method: POST, url: 'http://127.0.0.1/', timeout: 3600}}]",
    )
    assert told(result) == []


def test_a_tool_that_nothing_ends_is_running_still_and_an_endless_cycle_is_told() -> None:
    [result] = run(
        "tests: [{name: one, mocks: {fetch: {hang: true}}, expect: {status: running}}]",
        "workflow: [{step: fetch, tool: {kind: http, method: POST, url: 'http://127.0.0.1/'}}]",
    )
    assert told(result) == []
    [result] = run(
        "tests: [{name: one, expect: {status: completed}}]",
        "workflow: [{step: a, tool: {kind: sleep, seconds: 60}, next: a}]",
    )
    assert "does not come to an end" in result.failures[0].found


def test_a_long_loop_is_no_endless_one() -> None:
    [result] = run(
        "tests: [{name: one, mocks: {work: {ok: 1}}, expect: {status: completed, calls: {work: 3000}}}]",
        "workflow: [{step: work, loop: {in: \"{{ range(3000) }}\", iterator: n}, tool: {kind: http, url: 'http://127.0.0.1/'}}]",
    )
    assert told(result) == []


def test_a_wait_without_an_end_is_waiting() -> None:
    [waits] = run(
        "tests: [{name: one, expect: {status: waiting, route: [ask]}}]",
        "workflow: [{step: ask, tool: {kind: wait, signal: x}}]",
    )
    assert told(waits) == []


def test_children_are_played_too_or_pretended() -> None:
    parent = """
    workflow:
      - {step: call, tool: {kind: playbook, path: test/child1, input: {n: 4}}, next: end}
      - {step: end, tool: {kind: noop, result: "{{ call }}"}}
    """
    child = "workflow: [{step: ask, tool: {kind: http, url: 'http://127.0.0.1/{{ workload.n }}'}}]\nworkload: {n: 0}"
    results = run(
        """
        tests:
          - name: played
            mocks: {"child1:ask": {ok: 5}}
            expect: {status: completed, result: 5, calls: {"child1:ask": [{url: "http://127.0.0.1/4"}]}}
          - name: pretended
            mocks: {call: {ok: 6}}
            expect: {status: completed, result: 6, calls: {"child1:ask": 0}}
        """,
        parent,
        child,
    )
    assert [told(result) for result in results] == [[], []]


def test_the_world_changes_once_for_each_idempotency_key() -> None:
    [result] = run(
        """
        world: {n: 0, last: null}
        effects: {fetch: {n: "{{ world.n + 1 }}", last: "{{ result.x }}"}}
        tests:
          - name: one
            mocks: {fetch: {ok: {x: 3}}}
            expect: {world: {n: 1, last: 3}}
        """,
        FETCH,
    )
    assert told(result) == []


def test_credentials_and_settings_are_given() -> None:
    [result] = run(
        """
        keychain: {bank: {user: u, password: hunter22}}
        settings: {retries: {plugin: {max_attempts: 1}}}
        tests:
          - name: one
            mocks: {ask: {error: {kind: timeout, retryable: true}}}
            expect: {status: failed, calls: {ask: [{headers: {x: "{{ value == 'hunter22' }}"}}]}}
        """,
        """
        keychain: [{name: bank}]
        workflow: [{step: ask, tool: {kind: http, url: 'http://127.0.0.1/', headers: {x: "{{ keychain.bank.password }}"}}}]
        """,
    )
    assert told(result) == []


def test_a_refused_start_and_a_skipped_case() -> None:
    results = run(
        """
        tests:
          - {name: refused, workload: {n: x}, expect: {refused: "'x' is not of type 'integer'"}}
          - {name: unexpected, workload: {n: x}, expect: {status: completed}}
          - {name: later, skip: not yet, expect: {status: completed}}
        """,
        "executor: {spec: {workload_schema: {properties: {n: {type: integer}}}}}\n" + FETCH,
    )
    assert [result.status for result in results] == ["passed", "failed", "skipped"]
    assert "it was refused" in results[1].failures[0].found


def test_coverage_knows_arcs_gates_and_rules_also_those_of_quiet_items() -> None:
    playbook = """
    workflow:
      - step: work
        loop: {in: [1, 2], iterator: n}
        tool:
          kind: http
          url: "http://127.0.0.1/"
          spec:
            policy:
              rules:
                - {when: "{{ outcome.status == 'error' }}", then: {do: fail}}
                - else: {then: {do: continue}}
        next:
          arcs:
            - {step: end, when: "{{ event.name == 'loop.done' }}"}
            - {step: end, when: "{{ event.name == 'step.failed' }}"}
      - step: end
        tool: {kind: noop}
        spec: {policy: {admit: {rules: [{when: "{{ ctx.never is defined }}", then: {allow: true}}, {else: {then: {allow: true}}}]}}}
    """
    coverage = Coverage()
    run("tests: [{name: one, mocks: {work: {ok: 1}}, expect: {status: completed}}]", playbook, coverage=coverage)
    assert sorted(what for _, what in coverage.playbooks["test/play"].missed()) == [
        "arc work → end", "rule 1 of the gate of end", "rule 1 of work.work_task",
    ]  # fmt: skip
    assert coverage.percent == pytest.approx(50.0)
