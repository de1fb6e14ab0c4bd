"""Where the cluster that a question is about comes from: ZooKeeper, its files, or what Kontrast has written."""
