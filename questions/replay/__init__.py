"""What a replay says at its end: incidents, phases of a migration, and the agreement."""
