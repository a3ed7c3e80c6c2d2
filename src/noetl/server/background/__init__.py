"""Background tasks: timers, lease expiry, repair, result GC, outbox relay."""
