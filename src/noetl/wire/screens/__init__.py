"""Bodies that screens read: graph, moments, step-runs, overview, comparisons."""
