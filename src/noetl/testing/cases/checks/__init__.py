"""Expectations, coverage and saga guarantees."""
