"""The plan of a playbook: all that is known before it runs.

It is computed once per version.
"""
