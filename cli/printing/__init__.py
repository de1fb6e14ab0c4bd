"""Print sentences, tables and lines for people."""
