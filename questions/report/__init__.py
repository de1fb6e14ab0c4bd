"""The account of a cluster over a window of time: one pass over its rows, in parts that can be made side by side."""
