"""Remedies, which are acts that change a cluster, with preconditions, commands, cost and evidence, by subject."""
