"""Workers of a server: connections, granted leases, and presence."""
