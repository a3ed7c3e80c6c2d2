"""Template text to Jinja2's tree, with exact offsets and readable errors."""
