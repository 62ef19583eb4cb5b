"""What linear policies share: rows, sums, algebra, confidence sets, choosing, guarantees."""
