"""The sequencer: the only writer of events. It decides messages and commits them in batches."""
