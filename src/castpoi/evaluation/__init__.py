"""Evaluation: ranks, metrics, results; sees any ranker through one small protocol."""
