"""What lies in ZooKeeper and will hurt."""
