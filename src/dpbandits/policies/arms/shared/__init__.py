"""What policies for arms share: counting, batches, estimates, choosing, guarantees."""
