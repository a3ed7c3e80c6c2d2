"""The formatter: one layout, same meaning and comments.

Tested in tests/unit/dsl/formatter/test_format*.py.
"""

from noetl.dsl.formatter.format import format_text

__all__ = ["format_text"]
