"""Where a compiled update spends its time, by torch's profiler.

    python benchmarks/speed_profile.py [--width 256] [--variant plain] [--depth 0] [--updates 100]

`plain` is SAC of the peers' shape, else a variant of `fog variants` with critics of that depth.
"""

from __future__ import annotations

import argparse

import torch
import torch._inductor.config
from speed_ours import updates
from speed_workers import Contender
from torch.profiler import ProfilerActivity, profile

from fog.training.device import prepare

CALLING = ("CompiledFxGraph", "TorchDynamo", "Torch-Compiled", "AOTDispatcher", "Pregraph")
KERNELS = ("dense", "back", "weight_gradients", "back_one_twin")
GROUPS = ("matrix products", "optimiser kernels", "other kernels", "calling", "draw, noise, rest")


def group_of(name: str) -> str:
    """The group that an entry of the profile belongs to."""
    if "mm_out" in name or name.removeprefix("aoti_torch_cpu_") in KERNELS:
        return GROUPS[0]
    if "cpp_fused" in name:
        # Of all that is computed, only Adam's step takes roots.
        return GROUPS[1] if "sqrt" in name else GROUPS[2]
    return GROUPS[3] if any(part in name for part in CALLING) else GROUPS[4]


def main() -> None:
    """Print microseconds per update by group."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--variant", default="plain")
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--updates", type=int, default=100, help="a multiple of 10")
    options = parser.parse_args()
    prepare(threads=1)
    torch._inductor.config.cpp.enable_kernel_profile = True
    work = updates(
        Contender("fog", width=options.width, variant=options.variant, depth=options.depth)
    )
    work(options.updates)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        work(options.updates)
    groups = dict.fromkeys(GROUPS, 0.0)
    for entry in found.key_averages():
        groups[group_of(entry.key)] += entry.self_cpu_time_total / options.updates
    print("| | us per update |\n|---|---:|")
    for name, microseconds in groups.items():
        print(f"| {name} | {microseconds:,.0f} |")


if __name__ == "__main__":
    main()
