"""Engines that spread work over several machines (extra `castpoi[ray]`)."""
