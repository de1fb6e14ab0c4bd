"""What comes in and goes out: records, znodes, rows, and the one place that decodes bytes of others."""
