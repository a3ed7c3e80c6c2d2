"""Background tasks: timers, schedules, lease expiry, repair, GC, outbox relay."""
