"""Check every `__all__`: each name in it exists and is listed once."""

from __future__ import annotations

import importlib
import types

from tests.architecture.source import modules


def broken_promises(module: types.ModuleType) -> list[str]:
    names = list(getattr(module, "__all__", []))
    missing = [f"{module.__name__}.{name} does not exist" for name in names if not hasattr(module, name)]
    twice = [f"{module.__name__}.{name} is listed twice" for name in set(names) if names.count(name) > 1]
    return missing + twice


def test_every_public_name_exists() -> None:
    # Importing __main__ would run the command line.
    found = [importlib.import_module(module.name) for module in modules() if not module.name.endswith("__main__")]
    assert found
    assert [line for module in found for line in broken_promises(module)] == []


def test_a_broken_promise_is_seen() -> None:
    module = types.ModuleType("sample")
    module.__dict__.update(here=1, __all__=["here", "here", "gone"])
    assert broken_promises(module) == ["sample.gone does not exist", "sample.here is listed twice"]
