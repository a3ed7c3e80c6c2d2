"""A decision under construction: events, work, timers and messages of one commit."""
