"""The engine: a pure Petri-net machine; every state is a fold of events; tested in tests/unit/engine."""
