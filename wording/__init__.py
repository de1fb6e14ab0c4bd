"""The vocabulary of every sentence for people: counts, lists, times and facts, the same in rows, pages and commands."""
