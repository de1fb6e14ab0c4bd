"""A transaction: in-flight events that wait for their writes, the requests they send, and the rows at its end."""
