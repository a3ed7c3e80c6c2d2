"""Reactions to committed events: starts after ends of executions, notifications."""
