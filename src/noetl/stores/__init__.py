"""Stores: where events, work, timers, messages, snapshots and playbooks are kept.

Every store passes the same suite (tests/conformance). Only `wiring` names one.
"""
