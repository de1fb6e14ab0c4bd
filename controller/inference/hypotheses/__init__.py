"""Hypotheses about requests to the controller that no znode shows: a file for each rule, and one table.

A rule examines a written state that no expected write gives, and proposes what the controller may have done. Each
proposal runs the controller's own handlers on a trial of the transaction; `explanation` keeps the first whose trial
gives exactly the written state. A rule never decides by likelihood alone.
"""
