"""Subscriptions: poll sources, start executions, keep poisoned messages."""
