"""Background tasks: timers, triggers, leases, repair, GC, outbox, audit."""
