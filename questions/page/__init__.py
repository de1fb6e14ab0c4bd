"""What only the live page asks: clusters on one screen, their parts with a map, search and history."""
