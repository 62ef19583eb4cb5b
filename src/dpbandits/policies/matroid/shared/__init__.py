"""What policies for matroids share: exact means, items in flight, guarantees."""
