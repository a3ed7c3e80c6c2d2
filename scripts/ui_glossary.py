"""Write the words of the glossary for the tooltips of the web UI.

`make ui-types` calls it. Tested in tests/server/http/test_screen.py.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
_ROW = re.compile(r"^\| \*\*(.+?)\*\* \| (.+) \|$")
_LINK = re.compile(r"\[([^]]+)]\([^)]+\)")


def words() -> dict[str, str]:
    """Return each word with its meaning, without links and bold type."""
    _, _, table = GLOSSARY.read_text().partition("\n## All words\n")
    found = (_ROW.match(line) for line in table.splitlines())
    return {one[1]: _LINK.sub(r"\1", one[2]).replace("**", "").replace("\\|", "|") for one in found if one}


def text() -> str:
    """Return the module as it is kept."""
    lines = [f"  {json.dumps(word)}: {json.dumps(means, ensure_ascii=False)}," for word, means in words().items()]
    head = "// Made from docs/glossary.md by scripts/ui_glossary.py: run `make ui-types`, and change nothing here."
    return "\n".join(
        [head, "export const GLOSSARY = {", *lines, "} as const;", "export type Word = keyof typeof GLOSSARY;", ""]
    )


def main() -> None:
    """Write the module to the named file."""
    Path(sys.argv[1]).write_text(text())


if __name__ == "__main__":
    main()
