"""Sources of records, a journal or a topic, and the search and requests for complete reads."""
