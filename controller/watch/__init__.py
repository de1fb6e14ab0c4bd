"""Records about the feed itself: complete reads, generations, clock steps, and records that could not be applied."""
