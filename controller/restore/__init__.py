"""Contexts without a history of records, which are empty, stored or altered, or come from rows or a single read."""
