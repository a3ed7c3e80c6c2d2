"""The canonical tree of a playbook: built from nodes, written back, pinned by content hash."""
