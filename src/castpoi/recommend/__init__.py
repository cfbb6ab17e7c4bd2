"""Recommendations with reasons for a request, without HTTP and SQL."""
