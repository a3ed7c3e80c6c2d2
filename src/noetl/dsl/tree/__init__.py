"""The canonical tree of a playbook: built, written back, pinned by hash."""
