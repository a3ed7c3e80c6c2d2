"""Explanations of the language from its own descriptions: the source of `noetl explain` and of the reference pages."""

from __future__ import annotations

from noetl.dsl.explain.topics import CATEGORIES, Entry, Topic, find, suggestions, topics

__all__ = ["CATEGORIES", "Entry", "Topic", "find", "suggestions", "topics"]
