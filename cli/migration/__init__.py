"""The commands of `kontrast migration`, a file for each."""
