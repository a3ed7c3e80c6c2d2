"""Write the OpenAPI document that the types of the web UI are made from.

`make ui-types` calls it. Tested in tests/server/http/test_screen.py.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from noetl.server.http.openapi import document


def text() -> str:
    """Return the document as it is kept: without its version and without problems."""
    found = json.loads(document())
    found["info"]["version"] = "0"
    for operation in (one for methods in found["paths"].values() for one in methods.values()):
        operation["responses"] = {at: one for at, one in operation["responses"].items() if at.startswith("2")}
        del operation["security"]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the document to the named file."""
    Path(sys.argv[1]).write_text(text())


if __name__ == "__main__":
    main()
