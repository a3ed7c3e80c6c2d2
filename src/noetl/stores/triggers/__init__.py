"""Triggers other than schedules: in memory, and in SQL."""
