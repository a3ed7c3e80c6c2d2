"""Stores of events, work, timers, messages, snapshots and playbooks.

Every store passes tests/conformance. Only `wiring` names one.
"""
