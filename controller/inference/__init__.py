"""Explanation of written states by expected writes, and by hypotheses about requests that left no znode."""
