"""The output formats of a drawing: text, Mermaid, Graphviz, SVG, JSON, a screen."""
