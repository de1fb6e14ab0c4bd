"""Order of observations: paths, observations, windows of events, and published znodes."""
