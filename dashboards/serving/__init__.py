"""Pages over HTTP, with the server, its access rules, and its limit on connections."""
