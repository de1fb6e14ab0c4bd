"""Hypotheses about requests to the controller that no znode shows, with a function for each rule, and one table.

A rule examines a written state that no expected write gives, and proposes possible actions of the controller. Each
proposal runs the controller's own handlers on a trial of the transaction. `partition_state` keeps the first proposal
whose trial gives exactly the written state. A rule never decides by likelihood alone.
"""
