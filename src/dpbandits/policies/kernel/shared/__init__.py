"""What policies for kernels share: epochs, posteriors, confidence, what to expect of a run."""
