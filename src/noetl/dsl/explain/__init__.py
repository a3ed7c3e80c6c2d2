"""Explanations for `noetl explain` and the reference, generated from code."""

from __future__ import annotations

from noetl.dsl.explain.topics import CATEGORIES, Entry, Topic, find, suggestions, topics

__all__ = ["CATEGORIES", "Entry", "Topic", "find", "suggestions", "topics"]
