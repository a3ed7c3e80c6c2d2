"""In-memory caches: states, plans, catalog lookups and stored results."""
