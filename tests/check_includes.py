#!/usr/bin/env python3
"""Checks the direction of dependence between the folders of src/ by their #include lines.

    base <- device <- ring <- {tract, oct} <- cli;  numerics uses none and is used by all;
    formats uses base and numerics, zarr uses base;  streamlines uses numerics, base, formats;  dmri uses those and
    streamlines, its cuda/ also device;  report uses all of these and tract;  measure uses what tract uses, and tract.
Within ring, only ring/edge and ring/workloads include ring/edge: actors and runtime encode nothing.
Only files under */cuda and */webgpu include a header of CUDA or WebGPU. Exits with 1 and the offending lines when broken.
"""
import argparse
import pathlib
import re
import sys

# folder -> the folders it may include, besides itself
ALLOWED = {
    "base": set(),
    "numerics": set(),
    "device": {"base", "numerics"},
    "ring": {"base", "numerics", "device"},
    "formats": {"base", "numerics"},
    "zarr": {"base"},
    "streamlines": {"base", "numerics", "formats"},
    "dmri": {"base", "numerics", "formats", "streamlines"},
    "tract": {"base", "numerics", "device", "ring", "formats", "streamlines", "dmri"},
    "oct": {"base", "numerics", "device", "ring", "zarr"},
    "report": {"base", "numerics", "formats", "streamlines", "dmri", "tract"},
    "measure": {"base", "numerics", "device", "ring", "formats", "streamlines", "dmri", "tract"},
    "cli": {"base", "numerics", "device", "ring", "formats", "streamlines", "zarr", "dmri", "tract", "oct", "report", "measure"},
}
# What a folder may use besides when it lies, at any depth, in a folder of this name: zarr/direct reads into device memory,
# dmri/**/cuda fits models on a device.
ALLOWED_BELOW = {("zarr", "direct"): {"device"}, ("dmri", "cuda"): {"device"}}

VENDOR = re.compile(r"^(cuda.*\.h|nvrtc\.h|nvml\.h|cufile\.h|webgpu\.h|wgpu\.h|cub/.*|cuda/.*|cooperative_groups.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check(source: pathlib.Path) -> list[str]:
    problems = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".hpp", ".cpp", ".cu", ".cuh"} or not path.is_file():
            continue
        relative = path.relative_to(source)
        folder = relative.parts[0]
        test = path.name.endswith(".test.cpp")
        in_backend = any(part in {"cuda", "webgpu"} for part in relative.parts[:-1]) or path.suffix in {".cu", ".cuh"}
        if folder not in ALLOWED:
            problems.append(f"{relative}: the folder src/{folder} is not in the plan of tests/check_includes.py")
            continue
        allowed = ALLOWED[folder] | {folder}
        for below in relative.parts[1:-1]:
            allowed |= ALLOWED_BELOW.get((folder, below), set())
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            kind, target = match.groups()
            where = f"{relative}:{number}: includes {target}"
            if VENDOR.match(target) and not in_backend:
                problems.append(f"{where}: only files under cuda/ and webgpu/ include a vendor's header")
            if kind != '"':
                continue
            first = target.split("/")[0]
            if first == "support" and test:
                continue
            if first == "cingulum_build_info.hpp" and folder == "base":
                continue
            if first not in ALLOWED:
                problems.append(f"{where}: includes are written from src/, as \"{folder}/...\"")
            elif first not in allowed:
                problems.append(f"{where}: {folder} may use {', '.join(sorted(allowed - {folder})) or 'nothing'}")
            elif folder == "ring" and target.startswith("ring/edge/") and relative.parts[1] not in {"edge", "workloads"}:
                problems.append(f"{where}: within ring, only ring/edge and ring/workloads use ring/edge")
            elif any(f"/{backend}/" in target for backend in ("cuda", "webgpu")) and not in_backend:
                problems.append(f"{where}: a backend's header outside its folder")
    return problems


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="the folder src/")
    found = check(parser.parse_args().source)
    print("\n".join(found) if found else "the direction of dependence holds")
    sys.exit(1 if found else 0)
