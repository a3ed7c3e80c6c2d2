"""What a drawing shows: vertices, links, ranks and captions."""
