#!/usr/bin/env python3
"""`cingulum oct run` from simulated tiles to a volume, beside reading and writing alone, and beside the chain of
peers/oct_chain.py on the same tiles.

    bench/oct_run.py --folder DIR [--program build/bin/cingulum] [--device cuda] [--grid 4,4] [--tile 400,512,512] [--slices 3]
                     [--resolution UM] [--repetitions 1] [--peer PYTHON [--peer-kind cupy]] [--chain-only] [--out FILE.json]

The defaults are 20 GB of tiles. Rows: `oct run` with the stages that the chain has, too (interface, roll, resampling, blending,
overlap and registration, stacking; light, profile and attenuation left out), and the chain, both from disk (the tiles are dropped
from the page cache before each run) and with the tiles in memory, as they are after they were acquired or copied; `oct run` as it
is by default from disk, with native voxels where the disk has room for slices and volume. The first run of each row is not counted
(the chain's compiles its kernels). Beside each stands its ceiling: the bytes of all tiles read and of the volume written, by as
many threads; from disk they are read through the page cache and past it (O_DIRECT), and the quicker way counts. The peer needs
zarr-python (PYTHONPATH); the stages of ours and of the chain stand in the result. Without a GPU: --device cpu --peer
build/venv/bin/python --peer-kind numpy, at a smaller --grid and --tile.
"""
import argparse
import concurrent.futures
import json
import mmap
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
AXIAL_UM = 3.5
BLOCK = 16 << 20
DIRECT_BLOCK = 4 << 20


def read_through_cache(path):
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(BLOCK)
        while file.readinto(buffer):
            pass


def read_past_cache(path):
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, DIRECT_BLOCK) as buffer:
        offset = 0
        while count := os.preadv(file, [buffer], offset):
            offset += count
    os.close(file)


def write_bytes(path, count):
    block = os.urandom(BLOCK)
    with open(path, "wb", buffering=0) as file:
        for done in range(0, count, BLOCK):
            file.write(block[:min(BLOCK, count - done)])
        os.fsync(file.fileno())


def moved_alone(tiles, volume_bytes, folder, threads, from_disk):
    """Seconds to read every tile, by the quicker way, and to write as many bytes as the volume has."""
    files = sorted(tiles.glob("tile_*/image_*.bin"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    parts = {}
    ways = {"read": read_through_cache, **({"read, O_DIRECT": read_past_cache} if from_disk else {})}
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for way, read in ways.items():
            if from_disk:
                forget(tiles)
            begin = time.perf_counter()
            list(pool.map(read, files))
            parts[way] = time.perf_counter() - begin
        begin = time.perf_counter()
        list(pool.map(write_bytes, [folder / str(i) for i in range(threads)], [volume_bytes // threads] * threads))
        written = time.perf_counter() - begin
    shutil.rmtree(folder)
    return min(parts.values()) + written, {**parts, "write": written}


def forget(tiles):
    """The tiles leave the page cache: every row reads them from the disk."""
    os.sync()
    for path in tiles.glob("tile_*/image_*.bin"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def bytes_under(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def timed(command, **more):
    begin = time.perf_counter()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return seconds, done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/bin/cingulum")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--grid", default="4,4")
    parser.add_argument("--tile", default="400,512,512")
    parser.add_argument("--slices", type=int, default=3)
    parser.add_argument("--resolution", type=float, default=20.0)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--peer")
    parser.add_argument("--peer-kind", default="cupy")
    parser.add_argument("--chain-only", action="store_true", help="leave out the run by default, which takes longest")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    threads = len(os.sched_getaffinity(0))
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    tiles, volume = folder / "tiles", folder / "volume.ome.zarr"
    planes = int(options.tile.split(",")[0])
    interval = planes // 2
    if not (tiles / "truth.json").exists():
        shutil.rmtree(tiles, ignore_errors=True)
        seconds, _ = timed([program, "oct", "simulate", "--seed", 1, "--grid", options.grid, "--tile", options.tile, "--surface",
                            planes // 8, "--curvature", 6, "--flat-field", 0.3, "--motor-jitter", 1.5, "--slices", options.slices,
                            "--interval", interval, "--device", options.device, "--out", tiles, "--quiet"])
        print(f"simulated in {seconds:.0f} s", file=sys.stderr)
    tile_bytes = sum(file.stat().st_size for file in tiles.glob("tile_*/image_*.bin"))
    base = [program, "oct", "run", tiles, "--axial-step", AXIAL_UM, "--device", options.device, "--tile-memory", tile_bytes,
            "--force", "--quiet", "--out", volume]
    same_stages = ["--resolution", options.resolution, "--no-flat-field", "--no-profile", "--no-attenuation"]
    native = shutil.disk_usage(folder).free > 2.2 * tile_bytes
    default = [] if native else ["--resolution", options.resolution]
    rows = {}

    def prepare(from_disk):
        if from_disk:
            forget(tiles)
        else:
            for path in tiles.glob("tile_*/image_*.bin"):
                read_through_cache(path)

    def run_ours(name, command, from_disk):
        times, stages = [], []
        for repetition in range(options.repetitions + 1):
            shutil.rmtree(volume, ignore_errors=True)
            prepare(from_disk)
            seconds, _ = timed(command)
            if repetition:
                times.append(seconds)
                stages.append(json.loads(Path(f"{volume}.json").read_text())["run"]["stage_seconds"])
            print(f"{name}: {seconds:.1f} s{'' if repetition else ' (not counted)'}", file=sys.stderr)
        volume_bytes = bytes_under(volume)
        moved = [moved_alone(tiles, volume_bytes, folder / "moved", threads, from_disk) for _ in range(options.repetitions)]
        ceiling = statistics.median(seconds for seconds, _ in moved)
        rows[name] = {"seconds": statistics.median(times), "low": min(times), "high": max(times),
                      "stages": {stage: statistics.median(one[stage] for one in stages) for stage in stages[0]},
                      "volume_bytes": volume_bytes,
                      "reading_and_writing_alone": ceiling, "parts": moved[-1][1], "times_alone": statistics.median(times) / ceiling}
        print(f"{name}: {rows[name]}", file=sys.stderr)
        shutil.rmtree(volume)

    def run_peer(name, beside, from_disk):
        chain = []
        for repetition in range(options.repetitions + 1):
            shutil.rmtree(folder / "chain.zarr", ignore_errors=True)
            prepare(from_disk)
            _, text = timed([options.peer, HERE / "peers/oct_chain.py", options.peer_kind, tiles, folder / "chain.zarr",
                             options.resolution, AXIAL_UM, interval, threads])
            said = json.loads(text.splitlines()[-1])
            if repetition:
                chain.append(said)
            print(f"{name}: {said['seconds']:.1f} s {said['stages']}{'' if repetition else ' (not counted)'}", file=sys.stderr)
        best = min(chain, key=lambda one: one["seconds"])
        rows[name] = {**best, "times_ours": best["seconds"] / rows[beside]["seconds"]}
        shutil.rmtree(folder / "chain.zarr")

    for from_disk in (True, False):
        where = "from disk" if from_disk else "tiles in memory"
        same = f"oct run, the chain's stages, {where}"
        run_ours(same, [*base, *same_stages], from_disk)
        if options.peer:
            run_peer(f"chain, {where}", same, from_disk)
    if not options.chain_only:
        run_ours("oct run" if native else "oct run, resampled", [*base, *default], True)
    _, version = timed([program, "--version"])
    result = {"bench": "oct_run", "version": version, "machine": platform.processor() or platform.machine(), "threads": threads,
              "device": options.device, "tiles_bytes": tile_bytes, "grid": options.grid, "tile": options.tile,
              "slices": options.slices, "resolution_um": options.resolution, "rows": rows}
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
