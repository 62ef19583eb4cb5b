"""Policies and worlds in the shapes that other libraries expect, one thin file for each of them."""
