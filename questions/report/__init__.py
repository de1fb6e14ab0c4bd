"""Account of a cluster over a window of time: one pass over its rows, in independent parts."""
