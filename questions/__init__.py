"""Answers to an operator's questions about a cluster, from what `controller.step` makes of it."""
