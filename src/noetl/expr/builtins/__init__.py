"""Filters, tests, functions and methods that templates may call."""
