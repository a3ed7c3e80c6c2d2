"""Triggers other than schedules: what they hold, match and prove."""
