"""A report as one self-contained page, with pictures of availability and failovers."""
