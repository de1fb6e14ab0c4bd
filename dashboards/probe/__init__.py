"""Each live broker's metadata answer compared with ZooKeeper, read-only and seldom."""
