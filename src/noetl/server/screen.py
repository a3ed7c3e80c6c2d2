"""Files of the web UI. Tested in tests/server/http/test_screen.py.

`make ui` builds them. A file under `assets/` has a hash in its name, so a browser keeps it; every other one is asked for again. The folder holds a
gzip copy beside each file that it makes smaller.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.types import Scope

from noetl.server.problems import not_found

FOLDER: Final = Path(__file__).with_name("static")
# The first part of every path that the UI shows; ui/src/routes.tsx has the routes themselves.
PLACES: Final = frozenset({
    "about", "audit", "credentials", "edit", "executions", "letters", "login", "outbox", "people", "playbooks", "schedules",
    "settings", "tokens", "workers",
})  # fmt: skip
_NEVER: Final = frozenset({"api", "assets"})  # an unknown path below them is a problem in a browser too
_POLICY: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Vary": "Accept-Encoding",
}
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_ASKED_AGAIN: Final = {"Cache-Control": "no-cache"}
_INDEX: Final = "index.html"


class Screen:
    """Answers with the files of a folder; without a build it has none."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = _files(folder)

    @property
    def is_built(self) -> bool:
        return _INDEX in self._files

    def find(self, scope: Scope) -> Response | None:
        """Return the answer to a request that no route of the API takes, if there is one."""
        path = scope["path"].removeprefix("/")
        if scope["method"] not in ("GET", "HEAD"):
            return None
        if path in self._files and path != _INDEX:
            return self._answer(path, scope)
        first = path.partition("/")[0]
        if not self.is_built or first in _NEVER:
            return None
        if first in PLACES:
            return self.page(scope)
        return self._answer(_INDEX, scope, 404) if _is_browser(scope) else None  # it says so, and helps to find

    def page(self, scope: Scope) -> Response:
        """Return the page that loads the UI. Raises Refusal without a build."""
        if not self.is_built:
            raise not_found("This server has no web UI.", "Build it with `make ui`, and start the server again.")
        return self._answer(_INDEX, scope)

    def _answer(self, name: str, scope: Scope, status: int = 200) -> Response:
        kept = _KEPT if name.startswith("assets/") else _ASKED_AGAIN
        headers = {**_POLICY, **kept}
        body, zipped = self._files[name], self._files.get(f"{name}.gz")
        if zipped is not None and _takes_gzip(scope):
            body, headers["Content-Encoding"] = zipped, "gzip"
        return Response(body, status, headers, mimetypes.guess_type(name)[0] or "application/octet-stream")


def _is_browser(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def _takes_gzip(scope: Scope) -> bool:
    return any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])


@cache
def _files(folder: Path) -> Mapping[str, bytes]:
    """Return what a folder holds by relative path; read once, under a megabyte."""
    if not folder.is_dir():
        return {}
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
