"""nibabel and trx-python on the files that bench_formats_tractograms wrote into a folder: seconds per scenario, as JSON.

Reading means that every coordinate is in memory or was summed (trx-python maps files and would otherwise read nothing).
nibabel and trx-python do not call fsync.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path

import nibabel as nib
import numpy as np
from trx import trx_file_memmap as trx_python

warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
rows = []


def measure(scenario, path, body, repetitions=3):
    seconds = []
    for i in range(repetitions + 1):
        begin = time.perf_counter()
        body()
        if i:
            seconds.append(time.perf_counter() - begin)
    rows.append({"scenario": scenario, "seconds": seconds, "bytes": os.path.getsize(path)})


def read_trx(path):
    trx = trx_python.load(str(path))
    float(np.sum(trx.streamlines._data))
    trx.close()


measure("trx-python TRX float32 read", folder / "a.trx", lambda: read_trx(folder / "a.trx"))
loaded = trx_python.load(str(folder / "a.trx"))
measure("trx-python TRX float32 write, without fsync", folder / "a.trx", lambda: trx_python.save(loaded, str(folder / "p.trx")))
for suffix in ("trk", "tck"):
    path = folder / f"a.{suffix}"
    measure(f"nibabel {suffix.upper()} read", path, lambda: nib.streamlines.load(path), 3)
    file = nib.streamlines.load(path)
    measure(f"nibabel {suffix.upper()} write, without fsync", path, lambda: nib.streamlines.save(file, folder / f"p.{suffix}"), 3)
print(json.dumps(rows))
