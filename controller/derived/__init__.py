"""Values derived from the model: health, gauges, partition issues, rows, stored bytes."""
