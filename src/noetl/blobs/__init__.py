"""Blob stores: large results by reference.

Every blob store passes tests/conformance/test_blobs.py. Only `wiring` names one.
"""
