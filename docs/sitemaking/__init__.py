"""What lays out the pages of the documentation site, before Sphinx makes HTML of them.

staging.py     all pages in one folder: those that are written, and those that are made
running.py     pages whose examples are run, with what they print and draw
reference.py   modules and their names, from docstrings and options
policies.py    a page for each policy; measured.py: what the leaderboards say about it
reproduction.py   docs/reproduction.md as a page for each paper, and the gallery
pictures.py    the picture of a replay
links.py       whether all links of the site lead somewhere, and nowhere else
"""
