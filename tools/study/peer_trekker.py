#!/usr/bin/env python3
"""Trekker on the fODF of a condition, with its own defaults: peer_trekker.py FOLDER MASK KEPT SEEDS KEY OUT.tck
Seeds are drawn in the mask, at whose border streamlines end, in batches, until so many streamlines are kept or so many seeds are used. It draws its own random
numbers, so a run is not repeated to the bit. Every point is written, since by default it writes one in so many."""
import gzip
import shutil
import struct
import sys

import numpy as np
import Trekker

folder, mask_path, kept, seeds, key, out = *sys.argv[1:3], *map(int, sys.argv[3:6]), sys.argv[6]
sys.path.insert(0, __file__.rsplit("/", 2)[0])
from study.images import read_image  # noqa: E402

mask, affine = read_image(mask_path)
voxels = np.argwhere(mask > 0)
random = np.random.default_rng(key)
with gzip.open(mask_path) as source, open("mask.nii", "wb") as target:
    shutil.copyfileobj(source, target)
trekker = Trekker.initialize(f"{folder}/fod.nii".encode())
trekker.numberOfThreads(1)
trekker.writeInterval(1)
trekker.pathway_stop_at_exit(b"mask.nii")
lines, used = [], 0
while len(lines) < kept and used < seeds:
    count = min(max(2 * (kept - len(lines)), 100), seeds - used)
    places = voxels[random.integers(len(voxels), size=count)] + random.uniform(-0.5, 0.5, (count, 3))
    trekker.seed_coordinates((places @ affine[:3, :3].T + affine[:3, 3]).tolist())
    used += count
    # A streamline comes as a row of x, one of y and one of z.
    lines += [np.ascontiguousarray(np.asarray(line, dtype="<f4").reshape(3, -1).T) for line in trekker.run()]
body = b"".join(line.tobytes() + struct.pack("<3f", *[float("nan")] * 3) for line in lines[:kept] if len(line) > 1)
head = "mrtrix tracks\ndatatype: Float32LE\ncount: {}\nfile: . {}\nEND\n"
count = sum(len(line) > 1 for line in lines[:kept])
offset = len(head.format(count, 1000))
with open(out, "wb") as file:
    file.write(head.format(count, f"{offset:4d}").encode() + body + struct.pack("<3f", *[float("inf")] * 3))
