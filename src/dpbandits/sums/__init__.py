"""How running sums are released: in batches, by a binary tree, or factorized with a few buffers.

A sum is two named tuples, one for the public and one for the secret part of a policy's state, and
plain functions over them that run compiled as well. They hold vectors (`dim`); batches and trees hold
several sums at once (`slots`, such as arms).
"""
