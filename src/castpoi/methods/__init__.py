"""Ranking methods: their protocol, the registry, and runs on disk."""
