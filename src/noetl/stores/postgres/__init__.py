"""The store for a team: one PostgreSQL database."""
