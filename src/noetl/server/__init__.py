"""The control plane's shell: the one writer of events, and what wakes it.

Holds no rule of the language: those are in `engine`.
"""
