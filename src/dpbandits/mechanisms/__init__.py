"""Noise that is more than one draw of a generator: its calibration, and functions for verbs."""
