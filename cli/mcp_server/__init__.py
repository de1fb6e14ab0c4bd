"""Server of the Model Context Protocol, with the questions as tools and the runbooks as resources."""
