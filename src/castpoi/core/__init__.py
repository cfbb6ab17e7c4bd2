"""What every package may use: errors, files, settings, progress, provenance."""
