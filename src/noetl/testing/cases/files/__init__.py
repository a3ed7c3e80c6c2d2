"""Test files: fields, reading, checks."""
