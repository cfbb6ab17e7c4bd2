"""Check-ins: read, cleaned, localised, split, fingerprinted, audited, described, synthesized."""
