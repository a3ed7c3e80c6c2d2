"""Editors understand playbooks through this package, the language server behind `noetl lsp`.

Each feature is a pure function over a document and a place in it (`complete`, `hover`, `definition`, `rename`…), in one module
each and free of the protocol; `server` alone speaks it. Nothing here runs a playbook.
Tests: `tests/unit/lsp`, and `tests/acceptance/language/test_lsp.py` with the real process.
"""
