# %% [markdown]
# # Coming from cuslines
# A script for cuslines runs unchanged, on a GPU and on none: either by `python -m cingulum.compat cuslines SCRIPT ...`,
# or after the two lines below.

# %%
import cingulum.compat

cingulum.compat.install("cuslines")

# %% [markdown]
# From here on it is a script for cuslines: a direction getter, a tracker with the amplitudes, the map that stops, and the
# sphere; seeds in voxels.

# %%
import nibabel
import numpy as np
from cuslines import ProbDirectionGetter, Tracker
from dipy.data import get_sphere

import cingulum

cingulum.phantom(preset="crossing", voxel_size=3, scheme="dirs64-b1000", out="phantom")
files = {"bvals": "phantom/dwi.bval", "bvecs": "phantom/dwi.bvec", "mask": "phantom/mask.nii.gz"}
csd = cingulum.fit("phantom/dwi.nii.gz", model="csd", **files)
fa = cingulum.fit("phantom/dwi.nii.gz", model="dti", **files).fa
image = nibabel.load("phantom/dwi.nii.gz")
sphere = get_sphere(name="repulsion724").subdivide(n=0)
amplitudes = csd.odf(sphere, clip=True)
seeds = np.argwhere(fa > 0.4).astype(float)

with Tracker(
    ProbDirectionGetter(), amplitudes, fa, 0.15, sphere.vertices, sphere.edges,
    max_angle=np.radians(30), step_size=0.5, rng_seed=1, chunk_size=1000,
) as tracker:  # fmt: skip
    sft = tracker.generate_sft(seeds, image)
print(len(sft), "streamlines")

# %% [markdown]
# What is different: the same seeds and `rng_seed` give the same streamlines for any `chunk_size` and device, the CPU
# included. Boot and ptt work on the CPU, too.

# %%
with Tracker(
    ProbDirectionGetter(), amplitudes, fa, 0.15, sphere.vertices, sphere.edges,
    max_angle=np.radians(30), step_size=0.5, rng_seed=1, chunk_size=77,
) as tracker:  # fmt: skip
    again = tracker.generate_sft(seeds, image)
assert np.array_equal(again.streamlines._data, sft.streamlines._data)

# %% [markdown]
# What is new: the fit need not be turned into amplitudes, steps are millimetres, voxels may be anisotropic, and files are
# written while tracking goes on.

# %%
sidecar = cingulum.track(csd, dg="prob", stop_map=fa, stop_threshold=0.15, nseeds=2000, seed=1, out="new.trx", force=True)
print(sidecar["result"]["kept"], "streamlines, a sidecar of", len(sidecar), "entries")
