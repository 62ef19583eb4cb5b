"""What privacy means here: budgets, guarantees, accounting and calibration."""
