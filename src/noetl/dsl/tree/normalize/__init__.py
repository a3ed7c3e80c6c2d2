"""Normalize a parsed document of any spelling to the canonical tree.

Never raises: parts of the wrong shape are dropped; `shape` reports them. Tested in tests/unit/dsl/tree/test_normalize.py.
"""

from noetl.dsl.tree.normalize.document import normalize, tree

__all__ = ["normalize", "tree"]
