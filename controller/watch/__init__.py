"""Records about the feed itself, such as complete reads, generations, clock steps and unusable records."""
