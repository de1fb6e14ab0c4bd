"""Remedies, the acts that change a cluster: preconditions, commands, cost and evidence of each, a file a subject."""
