"""What castpoi survives: kills, full disks, frozen databases, flipped bits, odd tables."""
