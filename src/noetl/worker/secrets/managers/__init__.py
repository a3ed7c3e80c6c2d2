"""Secret managers, one module each.

Tested in tests/unit/worker/secrets/managers/.
"""
