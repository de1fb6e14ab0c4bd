"""The commands that answer a question, and change nothing."""
