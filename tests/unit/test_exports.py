"""What `import noetl` offers."""

from __future__ import annotations

import noetl


def test_dir_shows_what_can_be_imported() -> None:
    assert "Client" in dir(noetl)
    assert all(getattr(noetl, name) is not None for name in dir(noetl))
