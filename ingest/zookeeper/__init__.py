"""Watch and read one ZooKeeper by its own protocol: with persistent watches, or one-shot ones before 3.6."""
