"""Contexts without a history of records, such as empty, stored or altered ones, or ones from rows or one read."""
