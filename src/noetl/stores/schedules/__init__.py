"""Schedules and their firings: one adapter for each store."""
