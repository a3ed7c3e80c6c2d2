"""Completion, one module per kind of place."""
