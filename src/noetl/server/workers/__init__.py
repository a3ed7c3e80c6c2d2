"""Workers as the server sees them: connections, leases granted to them, and presence."""
