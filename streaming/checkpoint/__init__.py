"""A checkpoint's directory with its lock, its settings, Spark's files and their damage."""
