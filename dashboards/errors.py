"""What goes wrong in what people look at for a reason that its user can mend: one sentence each."""


class ServeError(Exception):
    """A sentence for the person who started it: what, where, and what to do."""
