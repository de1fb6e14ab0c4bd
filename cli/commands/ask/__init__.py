"""Commands that answer a question and only read."""
