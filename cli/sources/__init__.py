"""Sources of a question's cluster, which are ZooKeeper, its files, or Kontrast's own data."""
