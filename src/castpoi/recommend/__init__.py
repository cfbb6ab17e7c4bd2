"""From a request to recommendations with reasons, without HTTP and SQL."""
