"""Fields of a test file. Tested in tests/unit/testing/test_case_files.py."""

from __future__ import annotations

from typing import Final

from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

_ANY: Final = Type()
_DURATION: Final = OneOf((Number(least=0), Text()))
_STATUSES: Final = ("completed", "failed", "cancelled", "partial", "waiting", "paused", "running")


def _of(level: Level) -> LevelOf:
    return LevelOf(level.name, level)


ERROR: Final = Level(
    "test_error",
    "Mocked error of a task.",
    (
        Field("kind", Text(), "Kind of the error, as in `outcome.error.kind`.", required=True, example="timeout"),
        Field("message", Text(), "Error message.", rendered="worker"),
        Field("code", Text(), "Error code.", example="HTTP_503"),
        Field("retryable", Flag(), "Whether another attempt may succeed.", default="false"),
        Field("retry_after", Number(least=0), "Seconds to wait, as requested by the server."),
        Field("details", MapOf(_ANY), "Further details."),
        Field(
            "sent", Flag(), "Whether the request may have taken effect although its response was lost.", default="false"
        ),
    ),
)

_OUTCOME_FIELDS: Final = (
    Field("ok", _ANY, "Result. Its templates can read `input`, `fields`, `index`, `attempt` and `world`."),
    Field("error", OneOf((Text(), _of(ERROR))), "The task fails with this error: its kind, or a map."),
    Field("result", _ANY, "Result of a failed call, such as the body of a response."),
    Field("takes", _DURATION, "Duration: seconds, or `250ms`, `5m`, `30d`.", default="10ms"),
    Field("hang", Flag(), "The call never ends; only a time-out or a cancellation ends it.", default="false"),
    Field("real", Flag(), "Run the real tool, while virtual time stands still.", default="false"),
    Field("http", MapOf(_ANY), "`outcome.http`, such as `{status: 429}`."),
    Field("pg", MapOf(_ANY), '`outcome.pg`, such as `{sqlstate: "40001"}`.'),
    Field("py", MapOf(_ANY), "`outcome.py`."),
)
OUTCOME: Final = Level("test_outcome", "Outcome of one call of a task.", _OUTCOME_FIELDS)
_CALLS: Final = OneOf((_of(OUTCOME), ListOf(_of(OUTCOME), least=1)))
MOCK: Final = Level(
    "test_mock",
    "Outcomes of the calls of a task: the same each time, or by loop item.",
    (
        *_OUTCOME_FIELDS,
        Field(
            "items",
            MapOf(_CALLS),
            "Outcomes by loop item: index from 0, or key of a claimed row; `else`: all others.",
            example="{0: {ok: 1}, else: {error: timeout}}",
        ),
    ),
)
MOCKS: Final = MapOf(OneOf((_of(MOCK), ListOf(_of(OUTCOME), least=1))))

MESSAGE: Final = Level(
    "test_message",
    "Message to the execution at a time.",
    (
        Field("at", _DURATION, "Time from the start: seconds, or `250ms`, `5m`, `30d`.", required=True),
        Field("signal", Text(), "Name of the signal to send."),
        Field("data", _ANY, "Data of the signal."),
        Field("patch", MapOf(_ANY), "Keys of `ctx` to set."),
        Field("cancel", Text(), "Cancel the execution, with this reason."),
        Field("run", Text(), "Cancel only this step-run.", example="fetch#1"),
        Field("compensate", Flag(), "With `cancel`: compensate completed steps.", default="false"),
        Field("abandon", Flag(), "With `cancel`: abandon running compensations.", default="false"),
        Field("pause", Flag(), "Pause the execution."),
        Field("resume", Flag(), "Resume the execution."),
    ),
)

EXPECT: Final = Level(
    "test_expect",
    "Expectations of a case. Maps are compared by the keys given here; a template is a condition on `value`.",
    (
        Field("status", Choice(_STATUSES), "Final status, or the status when nothing is left to do."),
        Field("result", _ANY, "Result of the execution."),
        Field("ctx", MapOf(_ANY), "Keys of `ctx` at the end."),
        Field(
            "error", OneOf((Text(), MapOf(_ANY))), "Error: its kind, or a map of fields; `message` may be a substring."
        ),
        Field("route", ListOf(Text()), "All step-runs in scheduling order; `fetch#2` is a second run."),
        Field("visits", ListOf(Text()), "Step-runs that occur in this order, with others in between."),
        Field("avoids", ListOf(Text()), "Steps that never run."),
        Field("failed", ListOf(Text()), "All steps that fail."),
        Field(
            "events",
            OneOf((ListOf(OneOf((Text(), MapOf(_ANY)))), MapOf(Number(integer=True, least=0)))),
            "Events in this order, with others in between, by type or by fields; or counts by type.",
        ),
        Field(
            "calls",
            MapOf(OneOf((Number(integer=True, least=0), ListOf(_ANY)))),
            "Number of calls of a task, or the fields of each call.",
        ),
        Field("compensations", ListOf(Text()), "All compensations that succeed, in order."),
        Field("compensated", Flag(), "Whether every required compensation succeeded."),
        Field("world", MapOf(_ANY), "Keys of the mock world at the end."),
        Field("took", _ANY, "Seconds of virtual time from start to end.", example='"{{ value >= 86400 }}"'),
        Field("refused", Text(), "The start is refused, with this text in the reason."),
    ),
)

INVARIANT: Final = Level(
    "test_invariant",
    "Condition that must hold at the end, whichever step failed.",
    (
        Field("name", Text(), "Description.", required=True),
        Field("check", Text(), "Condition over `world`, `status`, `ctx` and more.", True, rendered="worker"),
        Field("when", Text(), "Check the invariant only if this holds.", rendered="worker"),
    ),
)
SAGA: Final = Level(
    "test_saga",
    "Saga test: every call fails in turn, then every compensation that follows.",
    (
        Field(
            "invariants",
            ListOf(_of(INVARIANT), least=1),
            "Conditions that must hold at the end of every play.",
            required=True,
        ),
        Field("only", ListOf(Text()), "Let only these steps fail."),
        Field("except", ListOf(Text()), "Do not let these steps fail."),
        Field("error", OneOf((Text(), _of(ERROR))), "Error they fail with.", default="client_error"),
    ),
)

_SHARED: Final = (
    Field("workload", MapOf(_ANY), "Payload of the start, merged over the playbook's workload."),
    Field("mocks", MOCKS, "Mocked outcomes, by `step`, `step.task` or `playbook:step`."),
    Field("cassette", Text(), "Recorded run, beside this file, that answers calls without a mock."),
    Field("messages", ListOf(_of(MESSAGE)), "Signals and other messages, ordered by time."),
    Field("keychain", MapOf(MapOf(_ANY)), "Fake credentials by name."),
    Field("settings", MapOf(_ANY), "Server settings, such as `retries`."),
    Field("real", ListOf(Text()), "Tool kinds that run for real if they have no mock, such as `python`."),
    Field("unmocked", Choice(("error", "empty")), "Outcome of a call without a mock: an error, or an empty result."),
    Field("world", MapOf(_ANY), "Initial mock world: free keys that `effects` change."),
    Field(
        "effects",
        MapOf(MapOf(_ANY)),
        "Changes to the world by a successful task: new values, once per idempotency key.",
        example='{debit: {balance: "{{ world.balance - input.amount }}"}}',
    ),
)
CASE: Final = Level(
    "test_case",
    "One play of the playbook: inputs and expectations. Its keys override those of the file.",
    (
        Field("name", Text(), "Name of the case.", required=True),
        Field("desc", Text(), "Description."),
        Field("skip", OneOf((Flag(), Text())), "Skip the case; a string is the reason."),
        *_SHARED,
        Field("expect", _of(EXPECT), "Expectations.", required=True),
    ),
)
FILE: Final = Level(
    "test_file",
    "Test file `NAME.test.yaml`, beside the playbook `NAME.yaml`.",
    (
        Field("playbook", Text(), "Playbook, relative to the folder of this file.", default="the file `NAME.yaml`"),
        Field("desc", Text(), "Description of the tests."),
        *_SHARED,
        Field("tests", ListOf(_of(CASE), least=1), "Cases."),
        Field("saga", _of(SAGA), "Saga test of the playbook."),
    ),
)
LEVELS: Final = (FILE, CASE, MOCK, OUTCOME, ERROR, MESSAGE, EXPECT, SAGA, INVARIANT)
TITLES: Final = {
    "test_file": "a test file", "test_case": "a case", "test_mock": "a mock", "test_outcome": "an outcome",
    "test_error": "an error", "test_message": "a message", "test_expect": "`expect`", "test_saga": "`saga`",
    "test_invariant": "an invariant",
}  # fmt: skip
