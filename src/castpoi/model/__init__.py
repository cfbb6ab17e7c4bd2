"""CaST-POI: every candidate place reads the trajectory for itself."""
