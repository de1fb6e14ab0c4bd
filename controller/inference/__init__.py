"""How a written value is explained: expected writes, and hypotheses about what the controller was asked to do."""
