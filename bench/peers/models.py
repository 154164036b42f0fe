"""DIPY's times for the scenarios of bench/models.cpp, on the same files: one JSON object on stdout.

    models.py FOLDER THREADS REPETITIONS
FOLDER holds dwi.nii, gradients.b (x y z b), response.txt (zonal coefficients). Only the fit is timed, not the reading.
"""

import json
import os
import sys

folder, threads, repetitions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
# Before numpy is loaded: its BLAS takes as many threads as the others have.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(threads)

import resource  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402

import dipy  # noqa: E402
import nibabel as nib  # noqa: E402
import numpy as np  # noqa: E402
from dipy.core.gradients import gradient_table  # noqa: E402
from dipy.reconst.csdeconv import AxSymShResponse, ConstrainedSphericalDeconvModel  # noqa: E402
from dipy.reconst.dti import TensorModel  # noqa: E402

warnings.simplefilter("ignore")
data = np.asarray(nib.load(os.path.join(folder, "dwi.nii")).dataobj, dtype=float)
gradients = np.loadtxt(os.path.join(folder, "gradients.b"))
table = gradient_table(gradients[:, 3], bvecs=gradients[:, :3], b0_threshold=50)
zonal = np.loadtxt(os.path.join(folder, "response.txt"))


def measure(name, body):
    elapsed, processor = [], []
    for _ in range(repetitions):
        start, start_processor = time.perf_counter(), time.process_time()
        body()
        elapsed.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_processor)
    report[name + "_s"], report[name + "_processor_s"] = elapsed, processor


def parallel_engines():
    """The engines of DIPY's multi_voxel_fit that can be imported here."""
    found = []
    for name in ("joblib", "ray", "dask"):
        try:
            __import__(name)
            found.append(name)
        except ImportError:
            pass
    return found


deconvolution = ConstrainedSphericalDeconvModel(table, AxSymShResponse(1.0, zonal), sh_order_max=8)
tensor = TensorModel(table, fit_method="WLS")
TensorModel(table, fit_method="WLS").fit(data[:2])
report = {"dipy": dipy.__version__, "numpy": np.__version__, "threads": threads, "parallel_engines": parallel_engines()}
measure("csd", lambda: deconvolution.fit(data))
for engine in report["parallel_engines"][:1]:
    report["csd_parallel_engine"] = engine
    measure("csd_parallel", lambda: deconvolution.fit(data, engine=engine, n_jobs=threads))


def fit_tensor():
    fit = tensor.fit(data)
    return fit.fa, fit.md, fit.ad, fit.rd, fit.directions


measure("dti_wls", fit_tensor)
report["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps(report))
