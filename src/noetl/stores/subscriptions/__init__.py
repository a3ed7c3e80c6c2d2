"""Progress of subscriptions in their sources: one adapter for each store."""
