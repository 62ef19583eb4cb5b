"""Every combination of policies, budgets and worlds, resumable, on threads, a cluster or a GPU.

plan.py      what is asked for: cells, and the combinations that are left out
unit.py      some runs of one cell: what is played, named and kept as one
folder.py    finished units on disk; claims.py: who is playing which
engines.py   where units are played; playing.py: the loop that hands them out
trial.py     how long it would take
table.py     the tidy table of all of it
"""

from dpbandits.reports.sweeps import plot_sweep
from dpbandits.sweeps.plan import Plan
from dpbandits.sweeps.sweep import sweep

__all__ = ["Plan", "plot_sweep", "sweep"]
