"""Order what was observed: paths, observations, windows of events, and the znodes that were published."""
