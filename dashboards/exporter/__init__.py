"""What `kontrast serve` and `kontrast watch` export: the pages, and where each metric gets its values."""
