"""Background tasks of a server: timers, lease expiry, repair, garbage collection and the outbox relay."""
