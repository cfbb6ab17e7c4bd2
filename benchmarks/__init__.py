"""How fast castpoi is, as ratios inside one run: machines differ, ratios travel."""
