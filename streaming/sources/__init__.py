"""Read records from a journal or a topic, and find or request complete reads in it."""
