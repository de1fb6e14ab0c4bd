"""Session with one ZooKeeper by its own protocol, with persistent watches or, before 3.6, one-shot watches."""
