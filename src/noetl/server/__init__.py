"""The one writer of events, and what wakes it; rules are in `engine`."""
