"""Contract with the outside, with records and znodes as input, rows as output, and the decoder of foreign bytes."""
