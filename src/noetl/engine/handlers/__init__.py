"""One handler per kind of message: reports, suspensions, dead letters, poison."""
