#!/usr/bin/env python3
"""Checks the direction of dependence between the folders of src/ by their #include lines.

    base <- device <- ring <- {tract, oct} <- runs <- {view, cli};  numerics uses none and is used by all;
    formats uses base and numerics, zarr those and formats, its direct/ also device;  images and streamlines use numerics,
    base, formats;  dmri uses those
    and both, its cuda/ also device;  report uses all of these and tract;  runs uses these but report;
    measure and view use runs, and cli uses measure and view and is used by none.
Within ring, only ring/edge and ring/workloads include ring/edge: actors and runtime encode nothing.
Only files under */cuda and */webgpu include a header of CUDA or WebGPU. Exits with 1 and the offending lines when broken;
before that it proves itself on samples.
"""
import argparse
import pathlib
import re
import sys
import tempfile

# folder -> the folders it may include, besides itself
ALLOWED = {
    "base": set(),
    "numerics": set(),
    "device": {"base", "numerics"},
    "ring": {"base", "numerics", "device"},
    "formats": {"base", "numerics"},
    "zarr": {"base", "numerics", "formats"},
    "images": {"base", "numerics", "formats"},
    "streamlines": {"base", "numerics", "formats"},
    "dmri": {"base", "numerics", "formats", "images", "streamlines"},
    "tract": {"base", "numerics", "device", "ring", "formats", "images", "streamlines", "dmri"},
    "oct": {"base", "numerics", "device", "ring", "formats", "zarr"},
    "report": {"base", "numerics", "formats", "images", "streamlines", "dmri", "tract", "oct"},
    "measure": {"base", "numerics", "device", "ring", "formats", "images", "streamlines", "zarr", "dmri", "tract", "runs"},
    "runs": {"base", "numerics", "device", "ring", "formats", "images", "streamlines", "zarr", "dmri", "tract", "oct"},
    "view": {"base", "numerics", "device", "ring", "formats", "images", "streamlines", "zarr", "dmri", "tract", "report", "runs"},
    "cli": {"runs", "view", "base", "numerics", "device", "ring", "formats", "images", "streamlines", "zarr", "dmri", "tract", "oct", "report", "measure"},
}
# What a folder may use besides when it lies, at any depth, in a folder of this name: zarr/direct reads into device memory,
# dmri/**/cuda fits models on a device.
ALLOWED_BELOW = {("zarr", "direct"): {"device"}, ("dmri", "cuda"): {"device"}}

VENDOR = re.compile(r"^(cuda.*\.h|nvrtc\.h|nvml\.h|cufile\.h|webgpu\.h|wgpu\.h|cub/.*|cuda/.*|cooperative_groups.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check(source: pathlib.Path, at_least: int = 0) -> list[str]:
    problems = []
    looked_at = 0
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
            looked_at += 1
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
    if looked_at < at_least:
        problems.append(f"only {looked_at} includes were looked at: is {source} the folder src/?")
    return problems


# A file, its include, and what is said of it; nothing where it is allowed.
SAMPLES = [
    ("base/a.hpp", '"base/b.hpp"', ""), ("base/a.cpp", '"device/b.hpp"', "base may use nothing"),
    ("numerics/a.hpp", '"base/b.hpp"', "numerics may use nothing"), ("device/a.cpp", '"ring/b.hpp"', "device may use base, numerics"),
    ("formats/a.cpp", '"streamlines/b.hpp"', "formats may use"), ("images/a.cpp", '"dmri/b.hpp"', "images may use"), ("dmri/models/a.cpp", '"device/b.hpp"', "dmri may use"),
    ("dmri/models/cuda/a.cpp", '"device/b.hpp"', ""), ("tract/a.cpp", '"report/b.hpp"', "tract may use"),
    ("report/a.cpp", '"cli/b.hpp"', "report may use"), ("cli/a.cpp", '"measure/b.hpp"', ""),
    ("base/a.cpp", "<cuda_runtime.h>", "vendor's header"), ("device/webgpu/a.cpp", "<webgpu.h>", ""),
    ("tract/a.cpp", '"device/cuda/b.hpp"', "a backend's header"), ("ring/actor/a.cpp", '"ring/edge/b.hpp"', "only ring/edge"),
    ("ring/workloads/a.cpp", '"ring/edge/b.hpp"', ""), ("base/a.cpp", '"b.hpp"', "written from src/"),
    ("base/a.test.cpp", '"support/b.hpp"', ""), ("base/a.cpp", '"support/b.hpp"', "written from src/"),
    ("view/a.cpp", '"cli/b.hpp"', "view may use"), ("cli/a.cpp", '"view/b.hpp"', ""), ("tract/a.cpp", '"view/b.hpp"', "tract may use"),
    ("other/a.cpp", '"base/b.hpp"', "not in the plan"), ("zarr/a.cpp", '"device/b.hpp"', "zarr may use"), ("zarr/direct/a.cpp", '"device/b.hpp"', ""),
]


def self_test() -> str:
    for name, include, expected in SAMPLES:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(f"  # include {include}  // a comment\n", encoding="utf-8")
            found = check(pathlib.Path(folder))
            if len(found) != (expected != "") or (found and expected not in found[0]):
                return f"of {include} in {name} it says {found} instead of '{expected}'"
            if not check(pathlib.Path(folder), 2):
                return "a check that looks at nearly nothing passes"
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="the folder src/")
    source = parser.parse_args().source
    wrong = self_test()
    if wrong:
        sys.exit(f"this check does not work: {wrong}")
    found = check(source, 1000)
    print("\n".join(found) if found else "the direction of dependence holds")
    sys.exit(1 if found else 0)
