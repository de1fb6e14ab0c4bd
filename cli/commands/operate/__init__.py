"""The commands for who runs Kontrast itself."""
