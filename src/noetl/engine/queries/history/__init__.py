"""Questions that the events of an execution answer: step-runs, items, comparisons."""
