"""The facts and messages of the engine: ids, events, messages, outcomes and errors; pure data, tested in tests/unit/model."""
