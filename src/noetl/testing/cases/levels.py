"""The fields of a file of tests, level by level: the source of its checks, its JSON Schema and its reference page.

What the fields mean is in `read`, `mocks`, `expect` and `matrix`. Tested in tests/unit/testing/test_case_files.py.
"""

from __future__ import annotations

from typing import Final

from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

_ANY: Final = Type()
_DURATION: Final = OneOf((Number(least=0), Text()))
_STATUSES: Final = ("completed", "failed", "cancelled", "partial", "waiting", "paused", "running")


def _of(level: Level) -> LevelOf:
    return LevelOf(level.name, level)


ERROR: Final = Level(
    "test_error",
    "An error that a task is pretended to meet.",
    (
        Field("kind", Text(), "The kind of the error, as in `outcome.error.kind`.", required=True, example="timeout"),
        Field("message", Text(), "What it says.", rendered="worker"),
        Field("code", Text(), "Its code.", example="HTTP_503"),
        Field("retryable", Flag(), "Whether another attempt may succeed.", default="false"),
        Field("retry_after", Number(least=0), "Seconds that the other side asks to wait."),
        Field("details", MapOf(_ANY), "What else is known."),
        Field("sent", Flag(), "Whether it may have taken effect before the answer was lost.", default="false"),
    ),
)

_OUTCOME_FIELDS: Final = (
    Field("ok", _ANY, "The result. Templates in it see `input`, `fields`, `index`, `attempt` and `world`."),
    Field("error", OneOf((Text(), _of(ERROR))), "The task fails with this error: its kind, or all of it."),
    Field("result", _ANY, "What an error leaves as its result, such as the body of an answer."),
    Field("takes", _DURATION, "How long it takes: seconds, or `250ms`, `5m`, `30d`.", default="10ms"),
    Field("hang", Flag(), "It never ends by itself; a time-out or a cancellation ends it.", default="false"),
    Field("real", Flag(), "The tool really runs, while pretended time stands still.", default="false"),
    Field("http", MapOf(_ANY), "`outcome.http`, such as `{status: 429}`."),
    Field("pg", MapOf(_ANY), '`outcome.pg`, such as `{sqlstate: "40001"}`.'),
    Field("py", MapOf(_ANY), "`outcome.py`."),
)
OUTCOME: Final = Level("test_outcome", "What one call of a task comes to.", _OUTCOME_FIELDS)
_CALLS: Final = OneOf((_of(OUTCOME), ListOf(_of(OUTCOME), least=1)))
MOCK: Final = Level(
    "test_mock",
    "What the calls of a task come to: the same each time, or item by item of a loop.",
    (
        *_OUTCOME_FIELDS,
        Field(
            "items",
            MapOf(_CALLS),
            "What the calls for the items of a loop come to, by index from 0, or by the key of a claimed row; `else`: others.",
            example="{0: {ok: 1}, else: {error: timeout}}",
        ),
    ),
)
MOCKS: Final = MapOf(OneOf((_of(MOCK), ListOf(_of(OUTCOME), least=1))))

MESSAGE: Final = Level(
    "test_message",
    "What somebody says to the execution at a time.",
    (
        Field("at", _DURATION, "When, from the start: seconds, or `250ms`, `5m`, `30d`.", required=True),
        Field("signal", Text(), "The name of a signal that is sent."),
        Field("data", _ANY, "The data of the signal."),
        Field("patch", MapOf(_ANY), "Keys of `ctx` that an operator sets."),
        Field("cancel", Text(), "The execution is cancelled, for this reason."),
        Field("run", Text(), "Only this step-run is cancelled.", example="fetch#1"),
        Field("compensate", Flag(), "With `cancel`: what was done is undone.", default="false"),
        Field("abandon", Flag(), "With `cancel`: what is being undone is given up.", default="false"),
        Field("pause", Flag(), "The execution is paused."),
        Field("resume", Flag(), "The execution goes on."),
    ),
)

EXPECT: Final = Level(
    "test_expect",
    "What must come of a case. Of a map the named keys are compared, a template is a condition on `value`.",
    (
        Field("status", Choice(_STATUSES), "How it ends, or stands when nothing is left to happen."),
        Field("result", _ANY, "The result of the execution."),
        Field("ctx", MapOf(_ANY), "Keys of `ctx` at the end."),
        Field("error", OneOf((Text(), MapOf(_ANY))), "The error: its kind, or fields of it; a message may be a part."),
        Field("route", ListOf(Text()), "Every step-run in the order of scheduling; `fetch#2` is a second run."),
        Field("visits", ListOf(Text()), "Step-runs that come in this order, with others between them."),
        Field("avoids", ListOf(Text()), "Steps that never run."),
        Field("failed", ListOf(Text()), "Every step that fails."),
        Field(
            "events",
            OneOf((ListOf(OneOf((Text(), MapOf(_ANY)))), MapOf(Number(integer=True, least=0)))),
            "Events in this order with others between them, each by its type or by fields of it; or how many of a type.",
        ),
        Field(
            "calls",
            MapOf(OneOf((Number(integer=True, least=0), ListOf(_ANY)))),
            "For a task, how often it is called, or the fields of each call.",
        ),
        Field("compensations", ListOf(Text()), "Every compensation that succeeds, in order."),
        Field("compensated", Flag(), "Whether everything that had to be undone was."),
        Field("world", MapOf(_ANY), "Keys of the pretended world at the end."),
        Field("took", _ANY, "Seconds of pretended time from start to end.", example='"{{ value >= 86400 }}"'),
        Field("refused", Text(), "The start is refused, for a reason with this text."),
    ),
)

INVARIANT: Final = Level(
    "test_invariant",
    "What must hold at the end, whichever step failed.",
    (
        Field("name", Text(), "What it says, in words.", required=True),
        Field("check", Text(), "The condition, over `world`, `status`, `ctx` and more.", True, rendered="worker"),
        Field("when", Text(), "It is asked only where this holds.", rendered="worker"),
    ),
)
SAGA: Final = Level(
    "test_saga",
    "The saga test: every call fails in turn, then every compensation that follows fails too.",
    (
        Field("invariants", ListOf(_of(INVARIANT), least=1), "What must hold at the end of every play.", required=True),
        Field("only", ListOf(Text()), "Only these steps are made to fail."),
        Field("except", ListOf(Text()), "These steps are not made to fail."),
        Field("error", OneOf((Text(), _of(ERROR))), "The error that they fail with.", default="client_error"),
    ),
)

_SHARED: Final = (
    Field("workload", MapOf(_ANY), "The payload of the start, merged over the playbook's own workload."),
    Field("mocks", MOCKS, "What tasks come to, by `step`, `step.task` or `playbook:step`."),
    Field("cassette", Text(), "A recorded run that answers every call which has no mock; beside this file."),
    Field("messages", ListOf(_of(MESSAGE)), "Signals and other messages, in the order of their times."),
    Field("keychain", MapOf(MapOf(_ANY)), "Credentials by name, made up for the test."),
    Field("settings", MapOf(_ANY), "Settings of the server, such as `retries`."),
    Field("real", ListOf(Text()), "Tool kinds that really run where they have no mock, such as `python`."),
    Field("unmocked", Choice(("error", "empty")), "What a call without a mock is: an error, or an empty result."),
    Field("world", MapOf(_ANY), "A pretended world at the start: free keys that `effects` change."),
    Field(
        "effects",
        MapOf(MapOf(_ANY)),
        "What a task that succeeds does to the world: new values, once for each idempotency key.",
        example='{debit: {balance: "{{ world.balance - input.amount }}"}}',
    ),
)
CASE: Final = Level(
    "test_case",
    "One play of the playbook: what is given, and what must come of it. Its own keys go over those of the file.",
    (
        Field("name", Text(), "What it shows, in words.", required=True),
        Field("desc", Text(), "More about it."),
        Field("skip", OneOf((Flag(), Text())), "It is not played; a text says why."),
        *_SHARED,
        Field("expect", _of(EXPECT), "What must come of it.", required=True),
    ),
)
FILE: Final = Level(
    "test_file",
    "A file of tests, `NAME.test.yaml`, beside the playbook `NAME.yaml`.",
    (
        Field("playbook", Text(), "The playbook, from the folder of this file.", default="the file `NAME.yaml`"),
        Field("desc", Text(), "What the tests are about."),
        *_SHARED,
        Field("tests", ListOf(_of(CASE), least=1), "The cases."),
        Field("saga", _of(SAGA), "The saga test of the playbook."),
    ),
)
LEVELS: Final = (FILE, CASE, MOCK, OUTCOME, ERROR, MESSAGE, EXPECT, SAGA, INVARIANT)
TITLES: Final = {
    "test_file": "a file of tests",
    "test_case": "a case",
    "test_mock": "a mock",
    "test_outcome": "an outcome",
    "test_error": "an error",
    "test_message": "a message",
    "test_expect": "`expect`",
    "test_saga": "`saga`",
    "test_invariant": "an invariant",
}
