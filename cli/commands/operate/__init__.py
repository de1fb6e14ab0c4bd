"""Commands for the person who runs Kontrast itself."""
