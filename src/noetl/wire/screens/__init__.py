"""Bodies that screens read: graph, moments, step-runs and items, overview, comparisons."""
