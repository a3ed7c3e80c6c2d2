"""The saga test finds missing compensations and violated engine guarantees."""

from __future__ import annotations

from textwrap import dedent

from noetl.dsl.tree.playbook import Playbook
from noetl.model.events import Event
from noetl.testing.cases.checks.expect import compensations
from noetl.testing.cases.checks.saga_guarantees import broken_promises
from noetl.testing.cases.files.read import read_tests
from noetl.testing.cases.player.player import play
from noetl.testing.cases.saga_matrix import SagaResult, run_saga
from noetl.testing.scenario import read_playbook
from tests.unit.testing.test_cases import HEAD, stage

SAGA = """
policy: {rollback: on_fail}
workflow:
  - {step: a, tool: {kind: http, method: POST, url: "http://127.0.0.1/a"}, compensate: undo_a, next: b}
  - {step: b, tool: {kind: http, method: POST, url: "http://127.0.0.1/b"}, compensate: undo_b, next: c}
  - {step: c, tool: {kind: http, method: POST, url: "http://127.0.0.1/c"}}
  - {step: undo_a, tool: {kind: http, method: DELETE, url: "http://127.0.0.1/a/{{ a.id }}"}}
  - {step: undo_b, tool: {kind: http, method: DELETE, url: "http://127.0.0.1/b/{{ b.id }}"}}
"""
TESTS = """
world: {things: []}
mocks: {a: {ok: {id: a}}, b: {ok: {id: b}}, c: {ok: {id: c}}, undo_a: {ok: {}}, undo_b: {ok: {}}}
effects:
  a: {things: "{{ world.things + ['a'] }}"}
  b: {things: "{{ world.things + ['b'] }}"}
  undo_a: &undo {things: "{{ world.things | reject('eq', fields.url.split('/')[-1]) | list }}"}
  undo_b: *undo
saga:
  invariants:
    - name: nothing is left behind
      check: "{{ world.things == [] }}"
      when: "{{ status == 'failed' and stuck == [] }}"
    - name: what is left is what is stuck
      check: "{{ world.things == stuck | sort }}"
      when: "{{ status == 'failed' }}"
"""


def tried(tests: str, playbook: str, *, crash: bool = False) -> SagaResult:
    found = read_tests(dedent(tests).encode(), "play.test.yaml", "play.test.yaml")
    assert found.troubles == []
    return run_saga(found, stage(playbook), found.given, {}, crash=crash)


def test_every_call_fails_in_turn_and_every_compensation_in_every_way() -> None:
    found = tried(TESTS, SAGA)
    assert found.failures == []
    assert [(row.what, row.plays, row.ended) for row in found.rows] == [
        ("nothing fails", 1, "completed"),
        ("a fails", 2, "failed, nothing undone"),
        ("b fails", 5, "failed, undone: a"),
        ("c fails", 8, "failed, undone: b a"),
    ]


def test_a_process_that_dies_before_any_commit_is_gone_on_with() -> None:
    found = tried(TESTS, SAGA, crash=True)
    assert found.failures == []
    assert [row.plays for row in found.rows] == [1, 4, 9, 14]


def test_a_crash_after_an_effect_does_it_again_under_the_same_key() -> None:
    made = stage(SAGA)
    given = read_tests(dedent(TESTS).encode(), "play.test.yaml", "play.test.yaml").given
    keys = set()
    for dies_at in range(play(made, given).commits):
        seen = play(made, given, dies_at=dies_at)
        assert (seen.status, seen.world) == ("completed", {"things": ["a", "b"]})
        keys |= {call.key for call in seen.calls if sum(call.key == other.key for other in seen.calls) > 1}
    assert {key.partition(":")[2] for key in keys} == {"a:a_task", "b:b_task", "c:c_task"}


def test_a_forgotten_compensation_is_found() -> None:
    found = tried(TESTS, SAGA.replace(", compensate: undo_b", ""))
    assert {one.expected for one in found.failures} == {"nothing is left behind", "what is left is what is stuck"}
    assert {one.path for one in found.failures} >= {"c fails", "c fails, then undo_a fails once"}
    first = found.failures[0]
    assert "route: a b c undo_a" in first.note
    assert '"things":["b"]' in first.found


def test_an_undo_of_the_wrong_thing_is_found() -> None:
    found = tried(TESTS, SAGA.replace("http://127.0.0.1/a/{{ a.id }}", "http://127.0.0.1/a/1"))
    assert [row.what for row in found.rows if row.broken] == ["b fails", "c fails"]


def test_a_cancel_that_asks_for_it_undoes_and_keeps_the_promises() -> None:
    waiting = SAGA.replace('{step: c, tool: {kind: http, method: POST, url: "http://127.0.0.1/c"}}', "WAIT").replace(
        "WAIT", "{step: c, tool: {kind: wait, signal: never}}"
    )
    made = stage(waiting)
    tests = TESTS.replace("c: {ok: {id: c}}, ", "") + "messages: [{at: 1h, cancel: enough, compensate: true}]\n"
    given = read_tests(dedent(tests).encode(), "play.test.yaml", "play.test.yaml").given
    seen = play(made, given)
    assert (seen.status, seen.world, compensations(seen.events)) == ("cancelled", {"things": []}, ["undo_b", "undo_a"])
    assert list(broken_promises(made.main.tree, seen.events)) == []


def test_a_saga_must_complete_without_faults() -> None:
    found = tried(TESTS.replace("c: {ok: {id: c}}", "c: {error: timeout}"), SAGA)
    assert "it ended failed" in found.failures[-1].found
    assert len(found.rows) == 1


def test_steps_are_chosen() -> None:
    found = tried(TESTS.replace("saga:\n", "saga:\n  only: [b, c]\n  except: [c]\n"), SAGA)
    assert [row.what for row in found.rows] == ["nothing fails", "b fails"]


def _log(*told: tuple[str, str, dict[str, object]], status: str = "failed", compensated: bool = True) -> list[Event]:
    events = [Event("e", "1", 0, kind, 0, step_run_id=run, payload=payload) for kind, run, payload in told]
    return [*events, Event("e", "1", 0, "playbook.finished", 0, status=status, payload={"compensated": compensated})]


def _undo(run: str, of: str, *, dead: bool = False, ok: bool = True) -> list[tuple[str, str, dict[str, object]]]:
    end: tuple[str, str, dict[str, object]] = (
        ("step.done", run, {}) if ok else ("step.failed", run, {"dead": dead, "letter": {}})
    )
    return [("step.scheduled", run, {"role": "compensation", "compensates": of}), end]


def test_promises_that_a_log_does_not_keep_are_told() -> None:
    playbook: Playbook = read_playbook(HEAD.replace("NAME", "play") + SAGA)
    done: list[tuple[str, str, dict[str, object]]] = [
        ("step.done", "a#1", {"compensate": "undo_a"}),
        ("step.done", "b#1", {"compensate": "undo_b"}),
    ]
    a, b = _undo("undo_a#1", "a#1"), _undo("undo_b#1", "b#1")
    assert list(broken_promises(playbook, _log(*done, *b, *a))) == []
    assert list(broken_promises(playbook, _log(*done, *a, *b))) == ["compensated a#1 b#1, expected b#1 a#1"]
    assert "a#1 was compensated 0 times and given up 0 times" in list(broken_promises(playbook, _log(*done, *b)))
    twice = list(broken_promises(playbook, _log(*done, *b, *a, *_undo("undo_a#2", "a#1"))))
    assert twice == ["a#1 was compensated 2 times and given up 0 times"]
    given_up = _undo("undo_b#1", "b#1", ok=False, dead=True)
    assert list(broken_promises(playbook, _log(*done, *given_up, *a))) == [
        "`compensated` is True, but 1 compensations were given up"
    ]
    assert list(broken_promises(playbook, _log(*done, *given_up, *a, compensated=False))) == []
    lost = [(kind, run, {key: value for key, value in told.items() if key != "letter"}) for kind, run, told in given_up]
    assert list(broken_promises(playbook, _log(*done, *lost, *a, compensated=False))) == [
        "1 compensations were given up, but 0 are dead letters"
    ]
    assert "though the execution is completed" in next(broken_promises(playbook, _log(*done, *b, status="completed")))
    assert list(broken_promises(playbook, [])) == ["the execution has not finished"]
