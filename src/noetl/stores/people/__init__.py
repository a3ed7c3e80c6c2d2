"""Users, groups and sessions: one adapter for each store."""
