"""Schedules: when they fire, which firings are due, and why one was missed."""
