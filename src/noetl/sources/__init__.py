"""Sources of subscriptions: folders, PostgreSQL and HTTP."""
