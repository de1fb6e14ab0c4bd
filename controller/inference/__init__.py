"""Explanation of written states: expected writes, and hypotheses about requests that left no znode."""
