"""Doorbells: how those who share a store tell each other to look now. No fact depends on one."""
