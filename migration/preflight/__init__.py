"""What keeps a cluster from KRaft, as far as its znodes show: a table of checks, each a pure function of a tree."""
