"""What the forwarder itself says: complete reads, generations, clocks, and records that could not be applied."""
