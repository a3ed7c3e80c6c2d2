"""Triggers other than schedules: one adapter for each store."""
