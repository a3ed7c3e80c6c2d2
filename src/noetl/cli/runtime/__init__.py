"""Runtime of a command: settings, store or server, driver lock, errors."""
