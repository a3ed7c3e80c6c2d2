"""Makes the canonical tree of a read document, whatever spelling it was written in.

Never raises and never reports: what does not have the right shape is left out here and told by `shape` and the rules.
Tested in tests/unit/dsl/test_normalize.py.
"""

from noetl.dsl.normalize.document import normalize

__all__ = ["normalize"]
