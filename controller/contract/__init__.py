"""The contract with the outside: records and znodes in, rows out, and the one place that decodes foreign bytes."""
