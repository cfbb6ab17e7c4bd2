"""Evaluation: ranks, metrics, results and tests, for every ranker that follows the protocol."""
