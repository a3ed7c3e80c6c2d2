"""The screen. A package, so that its tests share one server and one browser."""
