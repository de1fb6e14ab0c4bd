"""Exports of `kontrast serve` and `kontrast watch`, with their pages and the source of each metric's values."""
