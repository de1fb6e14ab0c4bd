"""The impact map of a cluster as SVG, in pages and alone."""
