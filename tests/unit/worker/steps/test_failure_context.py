"""What a worker tells of failed work: everything that helps, and no secret."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.masking.values import MASK
from noetl.model.letters import DeadLetter
from noetl.ports.letters import LetterSelection
from noetl.worker.secrets.redact import Secrets
from noetl.worker.steps.failure_context import shown
from tests.unit.worker.system import System, system


async def letters(run: System, workflow: str, **workload: Any) -> list[DeadLetter]:
    await run.ended(await run.start(workflow, **workload))
    return sorted(await run.store.letters(LetterSelection()), key=lambda one: one.loop_index or 0)


@pytest.mark.asyncio
async def test_a_letter_says_what_the_task_was_given_and_where_it_broke() -> None:
    async with system() as run:
        (letter,) = await letters(
            run,
            """
            - step: one
              tool:
                - get: {kind: noop, result: {id: 7}}
                - work: {kind: python, input: {x: "{{ _prev.id }}"}, code: "def main(x):\\n  return 1 / (x - 7)"}
            """,
            n=4,
            db_password="hunter2",
        )
        assert (letter.step_id, letter.task, letter.tool_kind, letter.attempts) == ("one", "work", "python", 1)
        assert letter.reason == "fatal"
        assert "division by zero" in letter.last_error
        assert "main" in letter.last_stack
        assert "ZeroDivisionError" in letter.last_stack
        assert letter.payload["input"] == {"x": 7}
        assert "1 / (x - 7)" in letter.payload["spec"]["code"]
        assert '"_prev":{"id":7}' in letter.context_excerpt
        assert letter.first_seen <= letter.last_seen


@pytest.mark.asyncio
async def test_every_failed_item_of_a_best_effort_loop_is_a_letter() -> None:
    async with system() as run:
        found = await letters(
            run,
            """
            - step: one
              loop: {in: [1, 0, 2, 0], iterator: n, spec: {mode: parallel, policy: {failure: {mode: best_effort}}}}
              tool: {kind: python, input: {n: "{{ iter.n }}"}, code: "result = 10 / n"}
            """,
        )
        assert [letter.loop_index for letter in found] == [1, 3]
        assert len({letter.fingerprint for letter in found}) == 1
        assert [letter.payload["input"] for letter in found] == [{"n": 0}, {"n": 0}]


def test_secrets_are_masked_by_value_by_name_and_in_addresses() -> None:
    secrets = Secrets()
    secrets.learn("pg", {"password": "correct horse"})
    given = {
        "url": "https://me:geheim@x.test/a?token=abcdefghij&n=1",
        "headers": {"Authorization": "Bearer xyz", "X-Ok": "yes"},
        "body": ["the password is correct horse", 5, None, True],
        "api_key": 12345678,
        "text": "x" * 9_000,
    }
    found = shown(given, secrets)
    text = str(found)
    for secret in ("geheim", "abcdefghij", "xyz", "correct horse", "12345678"):
        assert secret not in text
    assert found["headers"] == {"Authorization": MASK, "X-Ok": "yes"}
    assert found["body"][1:] == [5, None, True]
    assert len(found["text"]) == 4_001
    assert len(shown(list(range(90)), secrets)) == 51


@pytest.mark.asyncio
async def test_work_that_cannot_be_read_is_poison() -> None:
    async with system(workers=0) as run:
        execution = await run.start("- {step: one, tool: {kind: noop}}")
        (name,) = run.store.tables.canonical
        run.store.tables.canonical[name] = b"{ no tree"
        run.worker()
        row = await run.ended(execution)
        (letter,) = await run.store.letters(LetterSelection())
        assert (row["status"], letter.reason, letter.error["kind"]) == ("failed", "poison", "parse")
