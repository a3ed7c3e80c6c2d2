"""Reads of the log for API callers: followers, completion waiters, states at any event."""
