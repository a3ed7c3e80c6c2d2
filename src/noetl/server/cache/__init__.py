"""In-memory caches: execution states, compiled plans, catalog lookups and stored results."""
