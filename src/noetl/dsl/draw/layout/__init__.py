"""Where everything stands in an SVG drawing."""
