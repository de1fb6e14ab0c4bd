"""Transaction, with in-flight events that wait for their writes, their requests, and the rows at its end."""
