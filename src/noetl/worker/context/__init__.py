"""Context of a tool for one attempt of a task."""
