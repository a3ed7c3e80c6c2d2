"""Older spellings of the language: recognised here by their keys, one table per dialect.

A recognised form is answered with the canonical form that replaces it, and nothing else is said about that key.
Lowering a whole older playbook belongs here too, beside the table of its dialect. Tested in tests/unit/dsl/test_dialects.py.
"""

from __future__ import annotations

from noetl.dsl.dialects.first import FIRST_FORMS
from noetl.dsl.dialects.form import LegacyForm
from noetl.dsl.dialects.recognise import FORMS, recognise
from noetl.dsl.dialects.second import SECOND_FORMS

__all__ = ["FIRST_FORMS", "FORMS", "SECOND_FORMS", "LegacyForm", "recognise"]
