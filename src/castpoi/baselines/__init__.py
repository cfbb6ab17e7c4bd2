"""Ranking methods to compare with."""
