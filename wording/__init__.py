"""Wording of counts and lists in sentences for people, the same in every row, page and command."""
