"""`fog doctor`: what works on this machine, and what to do about what does not."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
from collections.abc import Sequence
from typing import Any

from fog.cli.parser import Parser
from fog.envs import gl_backends, suites
from fog.probing import registry
from fog.system import machine


def doctor(argv: Sequence[str]) -> int:
    """Report suites, rendering, device and threads; exit 1 if nothing can be trained."""
    parser = Parser("doctor", "Check what works on this machine: suites, GL, device, threads.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse(argv)
    report = examine()
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print(_text(report))
    return 0 if report["torch"]["works"] and any(s["available"] for s in report["suites"]) else 1


def examine() -> dict[str, Any]:
    """Everything `fog doctor` prints, as data."""
    return {
        "versions": machine.versions(),
        "hardware": machine.hardware(),
        "suites": [dataclasses.asdict(status) for status in suites()],
        "gl": gl_backends(),
        "torch": _torch(),
        "probes": sorted(registry.available()),
        "extras": {name: importlib.util.find_spec(name) is not None for name in ("wandb", "ray")},
        "thread_caps": {
            name: os.environ[name]
            for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
            if name in os.environ
        },
    }


def _torch() -> dict[str, Any]:
    try:
        import torch
    except (ImportError, OSError) as error:
        return {"works": False, "detail": str(error)}
    from fog.training.device import compile_obstacle

    found = torch.cuda.is_available()
    device = torch.device("cuda" if found else "cpu")
    return {
        "works": True,
        "version": torch.__version__,
        "cuda": torch.cuda.get_device_name() if found else None,
        "threads": torch.get_num_threads(),
        "compile": compile_obstacle(device) or "works",
    }


def _text(report: dict[str, Any]) -> str:
    host, torch = report["hardware"], report["torch"]
    lines = [
        f"fog {report['versions']['fog']}, Python {report['versions']['python']}, {host['system']}",
        f"{host['cpu']}, {host['cores']} cores, {host['memory_gib']} GiB",
        "",
        "suites",
    ]
    for status in report["suites"]:
        mark = "ok  " if status["available"] else "miss"
        lines.append(
            f"  {mark}  {status['suite']:<14} {status['version'] or '-':<8} {status['detail']}"
        )
    lines += ["", "rendering (only videos need it; one that works is enough)"]
    lines += [
        f"  {'ok  ' if at == 'works' else 'miss'}  {name:<14} {at}"
        for name, at in report["gl"].items()
    ]
    lines += ["", "learning"]
    if torch["works"]:
        lines.append(f"  ok    torch {torch['version']}, {torch['threads']} threads at most")
        gpu = torch["cuda"] or "no GPU: paper scale needs one; miniatures (--scale) run on the CPU"
        lines.append(f"  {'ok  ' if torch['cuda'] else 'none'}  {gpu}")
        compiles = torch["compile"] == "works"
        lines.append(f"  {'ok  ' if compiles else 'none'}  compiled updates: {torch['compile']}")
    else:
        lines.append(f"  FAIL  torch: {torch['detail']}")
    lines.append(f"  probes: {', '.join(report['probes']) or 'none installed'}")
    return "\n".join(lines)
