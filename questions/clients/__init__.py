"""Whom an outage hits: consumer groups, transactional ids and the teams that own them."""
