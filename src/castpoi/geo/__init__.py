"""Geometry of the city: distances, buckets, zones."""
