"""Recorded outcomes of real executions."""
