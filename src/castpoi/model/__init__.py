"""CaST-POI: every candidate place attends to the visits of the history."""
