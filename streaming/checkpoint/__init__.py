"""Hold a checkpoint's directory: its lock and settings, Spark's files in it, and which of them is damaged."""
