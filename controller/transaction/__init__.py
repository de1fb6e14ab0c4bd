"""One step in progress: events that wait for their writes, the requests they send, and the end that publishes."""
