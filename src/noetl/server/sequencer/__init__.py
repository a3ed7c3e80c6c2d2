"""The only writer of events: decides messages and commits them in batches."""
