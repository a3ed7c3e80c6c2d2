"""Law: a budget bounds the processor time and the memory of every evaluation.

Time is compared with that of a plain loop that uses up the same budget, in the same process. `make chaos` runs 10,000
expressions and all with whole budgets.
"""

from __future__ import annotations

import gc
import random
import resource
import time

import pytest

from noetl.expr import Budget, TemplateError, compile_template
from noetl.expr.runtime.budget import BYTES, OPERATIONS
from tests.unit.expr.safety.hostile import DATA, GROWING, makers, repeated

MAKERS = dict(makers())
_MOST_TIMES = 10  # of the time that a plain loop takes for the same budget
_MOST_MB = 100


def _measure(source: str, share: int) -> float:
    """Evaluate with a share of the budget; return the processor time in seconds."""
    template, budget = compile_template(source), Budget(OPERATIONS // share, BYTES // share)
    message = ""
    start = time.process_time()
    try:
        template.evaluate(DATA, budget=budget)
    except TemplateError as error:
        message = error.message
    taken = time.process_time() - start
    assert len(message) < 10_000, source
    return taken


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _check(source: str, name: str, share: int) -> None:
    before = _peak_mb()
    taken = _measure(source, share)
    if taken > _MOST_TIMES * (plain := _measure(repeated("n + 1"), share)):
        # Another process, or a collection of garbage, may have taken the time: measure once more, side by side.
        gc.collect()
        taken, plain = min(_measure(source, share), taken), _measure(repeated("n + 1"), share)
    assert taken <= _MOST_TIMES * plain, f"{name}: {taken / plain:.0f} times a plain loop"
    assert _peak_mb() - before <= _MOST_MB, f"{name}: {_peak_mb() - before:.0f} MB"


@pytest.mark.parametrize("name", MAKERS)
def test_every_callable_keeps_its_budget(name: str) -> None:
    chance = random.Random(name)
    for _ in range(2):
        expression = MAKERS[name](chance)
        _check(repeated(expression), expression, 50)


@pytest.mark.parametrize("source", GROWING, ids=lambda source: source[30:90])
def test_growing_values_keep_their_budget(source: str) -> None:
    _check(source, source, 10)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(100))
def test_processor_time_per_unit_of_fuel(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        expression = MAKERS[chance.choice(list(MAKERS))](chance)
        _check(repeated(expression), expression, 50)


@pytest.mark.chaos
@pytest.mark.parametrize("name", MAKERS)
def test_whole_budgets(name: str) -> None:
    expression = MAKERS[name](random.Random(name * 2))
    _check(repeated(expression), expression, 1)
