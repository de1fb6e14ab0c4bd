"""Every metric that Kontrast exports, a file a subject, and the form in which prometheus-client writes it."""
