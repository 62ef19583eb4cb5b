"""How running sums are released: in batches, or by a binary tree.

A sum is two named tuples, one for the public and one for the secret part of a policy's state, and
plain functions over them that run compiled as well. They hold several sums at once (`slots`, such as
arms) of vectors (`dim`).
"""
