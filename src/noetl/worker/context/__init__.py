"""What a tool may use while it runs one attempt of a task."""
