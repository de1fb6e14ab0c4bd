"""Answers to an operator's questions about a cluster, from the context that `controller.step` makes."""
