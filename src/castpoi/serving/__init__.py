"""Serving: recommendations with reasons from a run, in Python, on the command line, over HTTP."""
