"""Chaos tests: kills, full disks, frozen databases, flipped bits, odd tables."""
