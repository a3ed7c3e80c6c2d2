"""Data of the engine: ids, events, messages, work, outcomes and errors.

Tested in tests/unit/model.
"""
