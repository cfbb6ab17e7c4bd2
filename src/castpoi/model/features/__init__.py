"""Features of (history, place) pairs, counted from visits and not learned."""
