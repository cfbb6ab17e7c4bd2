"""Reading check-ins from the layouts in which people publish and keep them."""
