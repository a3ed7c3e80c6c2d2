"""The formatter: lays a playbook out evenly and keeps its meaning and its comments; tested in tests/unit/dsl/test_format*.py."""

from noetl.dsl.layout.format import format_text

__all__ = ["format_text"]
