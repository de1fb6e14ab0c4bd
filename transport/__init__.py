"""The stream between the parts: its address, and the journal, its embedded form."""
