"""The story of `kontrast demo`: its chapters, the processes it needs, and what it expects of them."""
