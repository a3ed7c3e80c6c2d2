"""Prometheus metrics of a server."""
