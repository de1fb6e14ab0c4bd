"""What a person must hear of: conditions, incidents, the kinds of alerts and their life."""
