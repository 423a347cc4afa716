"""The machine that was measured, as /proc tells it."""
import os
import pathlib
import platform
import re
import subprocess


def _cpuinfo():
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    return fields


def _has(flags):
    wanted = ("avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16", "sve")
    return [flag for flag in wanted if flag in flags.split()]


def describe():
    cpu = _cpuinfo()
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    model = cpu.get("model name") or f"{platform.machine()} part {cpu.get('CPU part', 'unknown')}"
    return {"cpu": model, "family": cpu.get("cpu family"), "model": cpu.get("model"), "stepping": cpu.get("stepping"),
            "features": _has(cpu.get("flags") or cpu.get("Features") or ""), "cores": len(os.sched_getaffinity(0)),
            "memory_gb": round(int(memory.group(1)) / 2**20), "kernel": platform.release(), "python": platform.python_version()}


def slug(machine):
    """The processor as part of a file's name: amd-epyc-family-25-model-1."""
    parts = [machine["cpu"]] + [f"{name} {machine[name]}" for name in ("family", "model") if machine.get(name)]
    return re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")


def ticks():
    """All ticks of all processors so far, and those the hypervisor gave to others."""
    numbers = [int(n) for n in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return sum(numbers[:8]), numbers[7]


def commit(root):
    ask = lambda *words: subprocess.run(["git", "-C", root, *words], capture_output=True, text=True).stdout.strip()  # noqa: E731
    changed = ask("status", "--porcelain", "--untracked-files=no", "--", "src", "include", "bench", "cmake")
    return (ask("rev-parse", "--short=12", "HEAD") or "unknown") + (" and changes" if changed else "")
