"""Boosted trees (LightGBM) over counted features of (history, candidate) pairs."""
