"""The known structural violations: a list that only shrinks.

    python -m tests.architecture.known_violations     write the list again after modules moved or a violation was removed

Writing refuses to add: the list may not become longer. Tests hold the list to be exact, so that a new violation fails and
a removed one must leave the list.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.architecture.folders import crowded
from tests.architecture.ownership import Code
from tests.architecture.source import modules

LIST = Path(__file__).with_suffix(".txt")


def current() -> list[str]:
    """Return today's violations: `rule path what`, sorted, each once."""
    code = Code(modules())
    found = {f"folder {folder}" for folder in crowded(module.path for module in modules())}
    found |= {f"write {one.path} {one.touched}" for one in code.foreign_writes()}
    found |= {f"private {one.path} {one.touched}" for one in code.private_reads()}
    return sorted(found)


def known() -> list[str]:
    return LIST.read_text(encoding="utf-8").splitlines()


def main() -> int:
    found = current()
    if LIST.exists() and len(found) > len(known()):
        print("\n".join(sorted(set(found) - set(known()))))
        print(f"The list would grow from {len(known())} to {len(found)} entries. Mend the code instead.")
        return 1
    LIST.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
