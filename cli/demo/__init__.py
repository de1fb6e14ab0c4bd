"""Story of `kontrast demo` with its chapters, its processes and their expected effects."""
