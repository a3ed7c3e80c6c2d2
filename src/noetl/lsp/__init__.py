"""Language server behind `noetl lsp`.

Each feature is a pure function over a document and an offset (`complete`, `hover`, `definition`, `rename`, …), one module
each and independent of the protocol; only `server` speaks it. Nothing here runs a playbook.
Tests: `tests/unit/lsp`, and `tests/acceptance/language/test_lsp.py` with the real process.
"""
