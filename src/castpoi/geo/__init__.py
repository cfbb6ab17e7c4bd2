"""Distances between points on Earth, and their time zones."""
