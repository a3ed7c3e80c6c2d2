"""Triggers other than schedules: what they hold, and what deliveries must prove."""
