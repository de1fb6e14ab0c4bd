"""Pages over HTTP: the server, who may ask, and how many connections it takes."""
