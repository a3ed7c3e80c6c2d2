"""Traces: spans made of events, and their export."""
