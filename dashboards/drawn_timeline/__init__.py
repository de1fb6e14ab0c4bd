"""A timeline as a picture for browsers, and as one page that can be attached to a postmortem."""
