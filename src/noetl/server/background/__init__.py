"""Background tasks: timers, schedules, admissions, leases, repair, GC, audit."""
