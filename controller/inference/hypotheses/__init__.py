"""Hypotheses about what the controller was asked to do where nothing announced it: one file a rule, one table.

A rule looks at a written state that no expected write gives, and proposes what the controller may have done. Each
proposal runs the controller's own handlers on a trial of the step; `explanation` keeps the first whose trial gives
exactly what was written. A rule never decides by likelihood alone.
"""
