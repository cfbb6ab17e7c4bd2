"""Check-ins: read, cleaned, split and stored as a city."""
