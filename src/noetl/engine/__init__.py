"""The engine: a pure Petri-net machine whose state is a fold of events.

Tested in tests/unit/engine.
"""
