#!/usr/bin/env python3
"""Reads an image with nibabel as float32, as the bench of formats does with Cingulum: seconds of each repetition as JSON.

    read_nifti.py FILE REPETITIONS
"""
import json
import sys
import time

import nibabel as nib
import numpy as np

path, repetitions = sys.argv[1], int(sys.argv[2])
seconds = []
for _ in range(repetitions):
    begin = time.perf_counter()
    data = np.asarray(nib.load(path).dataobj, dtype=np.float32)
    seconds.append(time.perf_counter() - begin)
print(json.dumps({"peer": f"nibabel {nib.__version__}", "seconds": seconds, "shape": data.shape}))
