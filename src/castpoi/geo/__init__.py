"""Geometry of the city: distances, buckets, neighbourhoods, time zones."""
