"""Commands that answer a question and change nothing."""
