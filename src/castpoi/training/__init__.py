"""Training: from a city to a run."""
