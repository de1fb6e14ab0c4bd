"""`step`: the one entrance to the replica.

Here belongs the dispatch of a record to what handles it. What the controller then does is in the machines.
"""
