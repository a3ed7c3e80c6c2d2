"""HTTP clients of a worker, and the hosts they may reach."""
