"""Experiments: suites of runs, from a list of rows to a folder of results."""
