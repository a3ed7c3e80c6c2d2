"""Editor features over a playbook's text: diagnostics, completion, hover, rename.

Each feature is a pure function over a reading of the text and an offset (`complete`, `hover`, `definitions`, `rename`, …),
one module each and independent of any protocol: `noetl.lsp` serves them to editors, `server` over HTTP. Nothing here runs
a playbook. Tests: `tests/unit/authoring`.
"""
