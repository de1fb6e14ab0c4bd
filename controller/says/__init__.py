"""What Kontrast tells people to do: the kinds of alerts and the remedies, in words."""
