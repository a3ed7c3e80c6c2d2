"""Blobs: where large results are kept, by reference.

Every one passes the same suite (tests/conformance/test_blobs.py). Only `wiring` names one.
"""
