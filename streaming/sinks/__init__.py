"""Write the rows of a batch into a journal or a topic an output."""
