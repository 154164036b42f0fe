#!/usr/bin/env python3
"""Places of tiles by `cingulum oct stitch`, m2stitch and multiview-stitcher on the same simulated mosaics, against the truth.

    oct_placement.py PROGRAM [--seeds N] [--speckle K,...] [--volumes] [--json FILE]

Run by a Python that has both (tools/versions.txt, [python-stitchers]; tools/bootstrap BUILD bench makes BUILD/stitchers). The
mosaics are those of the bounds of src/oct/placement/tile_placement.test.cpp: 4 x 5 tiles of 24 planes of 96 x 96 pixels,
overlap 0.2, motors off by 1.5 pixels, light falling by 0.3 r^2. The peers are given what they ask for: m2stitch places images,
so it gets the mean over all planes, plain and as its logarithm less the mean over tiles (which takes the uneven light away);
multiview-stitcher gets the same two, and with --volumes the volumes. Each starts from the motors' places. An error is the distance of a
tile from its true place after the best shift of the whole mosaic; a tile without a place counts as one where the motors put it.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import zarr

ROWS, COLUMNS = 4, 5


def run(program, *words):
    done = subprocess.run([program, "oct", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"oct {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def errors(places, truth):
    difference = np.asarray(places) - truth
    distance = np.hypot(*(difference - difference.mean(0)).T)
    return {"rms": float(np.sqrt((distance**2).mean())), "largest": float(distance.max())}


def by_m2stitch(images, stage):
    import m2stitch

    rows, columns = (np.repeat(np.arange(ROWS), COLUMNS), np.tile(np.arange(COLUMNS), ROWS))
    guess = np.round(stage - stage.min(0)).astype(int)
    table, _ = m2stitch.stitch_images(images.astype(np.float32), rows=rows, cols=columns, position_initial_guess=guess,
                                      ncc_threshold=0.1, row_col_transpose=False)
    return table[["y_pos", "x_pos"]].to_numpy(float)


def by_multiview_stitcher(images, stage):
    from multiview_stitcher import msi_utils, registration
    from multiview_stitcher import spatial_image_utils as si_utils

    axes = ["z", "y", "x"][3 - (images.ndim - 1):]
    views = []
    for image, place in zip(images, stage - stage.min(0), strict=True):
        origin = dict(zip(axes, [0.0] * (len(axes) - 2) + [float(value) for value in place], strict=True))
        sim = si_utils.get_sim_from_array(image.astype(np.float32), dims=axes, scale=dict.fromkeys(axes, 1.0),
                                          translation=origin, transform_key="motors")
        views.append(msi_utils.get_msim_from_sim(sim, scale_factors=[]))
    found = registration.register(views, transform_key="motors", new_transform_key="found", reg_channel_index=0,
                                  post_registration_do_quality_filter=False)
    shifts = []
    for place, transform in zip(stage - stage.min(0), found, strict=True):
        matrix = np.asarray(transform.isel(t=0) if "t" in transform.dims else transform)
        moved = matrix @ np.array([0.0] * (len(axes) - 2) + [*place, 1.0])
        shifts.append(moved[len(axes) - 2:len(axes)])
    return np.array(shifts)


def mosaic(program, folder, seed, speckle):
    run(program, "simulate", "--seed", seed, "--grid", f"{ROWS},{COLUMNS}", "--tile", "24,96,96", "--surface", 4, "--curvature", 2,
        "--depth-jitter", 0.5, "--flat-field", 0.3, "--motor-jitter", 1.5, "--speckle", speckle, "--layout", "table", "--out",
        folder / "tiles")
    truth = json.loads((folder / "tiles/truth.json").read_text())["tiles"]
    run(program, "grid", folder / "tiles/tiles.csv", "--out", folder / "mosaic")
    grid = folder / "mosaic/mosaic_grid_3d_z00.ome.zarr"
    begin = time.perf_counter()
    report = json.loads(run(program, "stitch", grid, "--out", folder / "slice.ome.zarr", "--json"))
    seconds = time.perf_counter() - begin
    values = zarr.open_array(str(grid / "0"), mode="r")[:]
    tiles = values.reshape(values.shape[0], ROWS, 96, COLUMNS, 96).transpose(1, 3, 0, 2, 4).reshape(-1, values.shape[0], 96, 96)
    return (np.array([tile["place_px"] for tile in truth]), np.array([tile["stage_px"] for tile in truth]), tiles,
            np.array(report["places_px"]), seconds)


def measured(name, make, truth, stage):
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = errors(make(), truth)
    except Exception as error:  # noqa: BLE001  (whatever a peer fails with is its result)
        result = {**errors(stage, truth), "refused": f"{type(error).__name__}: {error}"[:120]}
    return {"by": name, **result, "seconds": time.perf_counter() - begin}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--speckle", default="4,1")
    parser.add_argument("--volumes", action="store_true", help="multiview-stitcher on volumes, too: minutes a mosaic")
    parser.add_argument("--json")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    rows = []
    for speckle in (int(word) for word in options.speckle.split(",")):
        for seed in range(1, options.seeds + 1):
            with tempfile.TemporaryDirectory(prefix="cingulum-bench-") as name:
                truth, stage, tiles, ours, seconds = mosaic(program, Path(name), seed, speckle)
            plain = tiles.mean(1)
            flat = np.log(np.maximum(plain, 1e-6))
            flat -= flat.mean(0)
            found = [{"by": "cingulum oct stitch", **errors(ours, truth), "seconds": seconds},
                     {"by": "the motors", **errors(stage, truth), "seconds": 0.0},
                     measured("m2stitch, means", lambda: by_m2stitch(plain, stage), truth, stage),
                     measured("m2stitch, logarithms less their mean", lambda: by_m2stitch(flat, stage), truth, stage),
                     measured("multiview-stitcher, means", lambda: by_multiview_stitcher(plain, stage), truth, stage),
                     measured("multiview-stitcher, logarithms less their mean", lambda: by_multiview_stitcher(flat, stage), truth,
                              stage)]
            if options.volumes:
                found.append(measured("multiview-stitcher, volumes", lambda: by_multiview_stitcher(tiles, stage), truth, stage))
            for row in found:
                rows.append({"speckle": speckle, "seed": seed, **row})
                print(f"speckle {speckle}, seed {seed}, {row['by']}: rms {row['rms']:.2f} px, largest {row['largest']:.2f}, "
                      f"{row['seconds']:.1f} s {row.get('refused', '')}", flush=True)
    for speckle in sorted({row["speckle"] for row in rows}, reverse=True):
        for name in dict.fromkeys(row["by"] for row in rows):
            of = [row for row in rows if row["by"] == name and row["speckle"] == speckle]
            print(f"speckle {speckle}, {name}: rms {min(r['rms'] for r in of):.2f} to {max(r['rms'] for r in of):.2f} px, largest "
                  f"{max(r['largest'] for r in of):.2f}, refused {sum('refused' in r for r in of)} of {len(of)}")
    if options.json:
        Path(options.json).write_text(json.dumps({"bench": "oct_placement", "rows": rows}, indent=2))


if __name__ == "__main__":
    sys.exit(main())
