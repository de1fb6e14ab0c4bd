"""Boards without a Grafana: what their panels ask, and a drawing of what a Prometheus answers.

Here belong reading a board's JSON, asking, and drawing. Not here: which panels there are (`dashboards.boards`). A
drawing is a preview; Grafana draws the same data in its own way.
"""
