"""Measure the mask over known secrets: time per megabyte.

    python bench/masking.py

The time per megabyte must neither grow with the text nor with the number of secrets.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

from noetl.masking.values import KnownValues

SIZES = (80_000, 1_000_000, 20_000_000)
COUNTS = (1, 1_000)
TIMES = 5


def main() -> None:
    """Print one line for each size and number."""
    for count in COUNTS:
        known = KnownValues()
        for number in range(count):
            known.learn("api", {"token": f"secret-{number:06}-value"})
        known.mask("build the automata first")
        for size in SIZES:
            text = "the quick brown fox " * (size // 20)
            took = []
            for _ in range(TIMES):
                begin = perf_counter()
                known.mask(text)
                took.append(perf_counter() - begin)
            print(f"{count:>5} secrets {size / 1e6:>6.2f} MB {median(took) / size * 1e9:>8.1f} ms/MB")


if __name__ == "__main__":
    main()
