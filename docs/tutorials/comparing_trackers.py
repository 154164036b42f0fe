# %% [markdown]
# # Comparing trackers
# Which tracker is right? On a phantom that question has an answer. Here a few of ours, and DIPY's, track one field from
# the same seeds.

# %%
import nibabel
import numpy as np

import cingulum

cingulum.phantom(preset="crossing", voxel_size=3, scheme="dirs64-b1000", out="phantom")
files = {"bvals": "phantom/dwi.bval", "bvecs": "phantom/dwi.bvec", "mask": "phantom/mask.nii.gz"}
csd = cingulum.fit("phantom/dwi.nii.gz", model="csd", **files)
fa = cingulum.fit("phantom/dwi.nii.gz", model="dti", **files).fa
affine = nibabel.load("phantom/dwi.nii.gz").affine
seeds = nibabel.affines.apply_affine(affine, np.argwhere(fa > 0.4))[::2]

# %% [markdown]
# A `Tracker` keeps the field on its device and tracks it with other options. Shares of streamlines: `valid` ones connect
# the ends of a bundle, `invalid` ones connect what is not connected, the rest ends somewhere.

# %%
rows = {}
for dg in ("det", "prob", "ptt"):
    with cingulum.Tracker(csd, dg=dg, stop_map=fa, stop_threshold=0.15) as tracker:
        tracker.track(seeds=seeds).save(f"{dg}.trx", force=True)
    rows[dg] = cingulum.score(f"{dg}.trx", truth="phantom")

# %% [markdown]
# `cingulum.dipy` has DIPY's functions by name and arguments. The line that changes is the import.

# %%
from dipy.tracking.tracker import deterministic_tracking as dipys_tracking  # noqa: E402

from cingulum.dipy import ThresholdStoppingCriterion, deterministic_tracking  # noqa: E402

stop = ThresholdStoppingCriterion(fa, 0.15)
options = {"sh": csd.sh, "random_seed": 1, "max_angle": 30, "step_size": 0.5}
ours = list(deterministic_tracking(seeds, stop, affine, backend="cpu", **options))
theirs = list(dipys_tracking(seeds, stop, affine, **options))
for name, lines in (("ours", ours), ("DIPY's", theirs)):
    lengths = [np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in lines]
    print(f"deterministic, {name}: {len(lines)} streamlines, {np.mean(lengths):.1f} mm on average")

# %%
print(f"{'':6}{'valid':>8}{'invalid':>9}{'count':>8}")
for name, row in rows.items():
    print(f"{name:6}{row['valid']:8.3f}{row['invalid']:9.3f}{row['streamline_count']:8}")

# %% [markdown]
# `compare` sets two tractograms side by side, streamline by streamline.

# %%
print(cingulum.compare("det.trx", "prob.trx"))
