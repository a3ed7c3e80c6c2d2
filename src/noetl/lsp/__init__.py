"""Language server behind `noetl lsp`.

The features are the pure functions of `noetl.authoring`; only this package speaks the protocol and needs the extra `lsp`.
Tests: `tests/unit/lsp`, and `tests/acceptance/language/test_lsp.py` with the real process.
"""
