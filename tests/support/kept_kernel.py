"""Compiles a kernel for a GPU that is not there, or reads it from the disk, and says which.

A program of its own: what is kept is for the next process.
"""

import sys
from types import SimpleNamespace
from typing import Any

from numba.cuda import codegen, dispatcher
from numba.cuda.cudadrv import devices
from ptx import CAPABILITY, signature

from dpbandits.engine import gpu
from dpbandits.engine.state import classes
from dpbandits.policies.arms import UniformArms
from dpbandits.worlds import BernoulliArms


def main(registers: int) -> None:
    """As `Wave` does, but for the GPU."""
    device = SimpleNamespace(compute_capability=CAPABILITY)
    there: Any = dispatcher, devices, codegen.JITCUDACodegen, dispatcher._Kernel
    there[0].get_current_device = lambda: device
    there[1].get_context = lambda: SimpleNamespace(device=device)
    there[2].magic_tuple = lambda self: ("no driver", CAPABILITY)
    there[3].bind = lambda self: None  # loads it onto the GPU
    policy, environment = UniformArms(), BernoulliArms((0.5, 0.6))
    states = policy.begin(environment.problem(1000))[0], environment.world()
    combination = tuple(one for state in states for one in classes(state))
    kernel = gpu._kernel(gpu.play_one, combination, registers)
    with gpu._noticing(lambda: print("compiling")):
        kernel.compile(signature(policy, environment))
    print("kept" if kernel.stats.cache_path else "not kept")


if __name__ == "__main__":
    main(int(sys.argv[1]))
