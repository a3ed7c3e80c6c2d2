"""Seeded mutants of good playbooks: the checker never crashes or hangs.

A thousand mutants run by default, many more with `make chaos`. A failing mutant is named by its seed:

    pytest tests/corpus/test_mutants.py -k 'seed-123'
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from noetl.dsl.diagnostic import SEVERITIES
from noetl.dsl.formatter import format_text
from noetl.dsl.reading.parse import parse
from noetl.dsl.validate import validate
from noetl.wiring.embedded import language_kinds
from tests.corpus.corpus import files

KINDS = language_kinds()
GOOD = [path.read_text(encoding="utf-8") for path in files("good")]
HANG_SECONDS = 60
Mutation = Callable[[str, random.Random], str]


def drop_a_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return "".join(lines)


def drop_a_key(text: str, chance: random.Random) -> str:
    keys = list(re.finditer(r"^(\s*(?:- )?)[\w.]+:.*\n", text, re.MULTILINE))
    if not keys:
        return text
    key = chance.choice(keys)
    return text[: key.start()] + text[key.end() :]


def rename_a_step(text: str, chance: random.Random) -> str:
    steps = list(re.finditer(r"\bstep: (\w+)", text))
    if not steps:
        return text
    step = chance.choice(steps)
    return text[: step.start(1)] + step.group(1) + "_renamed" + text[step.end(1) :]


def break_a_brace(text: str, chance: random.Random) -> str:
    braces = [m.start() for m in re.finditer(r"[{}\[\]()'\"|]", text)]
    if not braces:
        return text
    at = chance.choice(braces)
    return text[:at] + chance.choice(["", text[at] * 2, "}", "{"]) + text[at + 1 :]


def shift_a_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    lines[at] = chance.choice(["  ", " ", "\t"]) + lines[at] if chance.random() < 0.5 else lines[at].lstrip(" ")
    return "".join(lines)


def swap_a_value(text: str, chance: random.Random) -> str:
    values = list(re.finditer(r": ([^\s{\[#|>][^\n]*)\n", text))
    if not values:
        return text
    value = chance.choice(values)
    new = chance.choice(
        [
            "[]",
            "{}",
            "null",
            "yes",
            "-1",
            "1e400",
            '"{{ }}"',
            '"{{ a.b[ }}"',
            "!!python/x y",
            "&a *a",
            "*a",
            "''",
            "9" * 5000,
        ]
    )
    return text[: value.start(1)] + new + text[value.end(1) :]


def cut_short(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))]


def insert_noise(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    return (
        text[:at]
        + chance.choice(["\x00", "\ufeff", "\U0001f600", "\ud7ff", "é", "\r", "%", "@", "`", "<<: ", "? ", "--- "])
        + text[at:]
    )


def splice_two(text: str, chance: random.Random) -> str:
    other = chance.choice(GOOD)
    return text[: chance.randrange(len(text))] + other[chance.randrange(len(other)) :]


MUTATIONS: tuple[Mutation, ...] = (
    drop_a_line, drop_a_key, rename_a_step, break_a_brace, shift_a_line, swap_a_value, cut_short, insert_noise, splice_two,
)  # fmt: skip


@contextmanager
def no_hang(seed: int) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"seed {seed} hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def mutant(seed: int) -> str:
    chance = random.Random(seed)
    text = chance.choice(GOOD)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        text = chance.choice(MUTATIONS)(text, chance) or "x"
    return text


def examine(seed: int) -> None:
    text = mutant(seed)
    with no_hang(seed):
        found = validate(text, "mutant.yaml", KINDS)
        formatted = format_text(text, "mutant.yaml")
    lines = text.count("\n") + 2
    for diagnostic in found:
        assert diagnostic.severity in SEVERITIES
        assert 1 <= diagnostic.line <= lines, diagnostic
        assert diagnostic.message, diagnostic
    if not parse(text).problems:
        assert not parse(formatted).problems


@pytest.mark.parametrize(
    "seeds", [range(start, start + 50) for start in range(0, 1000, 50)], ids=lambda r: f"seed-{r.start}"
)
def test_a_mutant_is_answered(seeds: range) -> None:
    for seed in seeds:
        examine(seed)


@pytest.mark.chaos
@pytest.mark.parametrize("start", range(1000, 21_000, 500))
def test_many_mutants_are_answered(start: int) -> None:
    for seed in range(start, start + 500):
        examine(seed)
