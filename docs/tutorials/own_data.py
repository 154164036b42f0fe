# %% [markdown]
# # Your own data
# A series is a NIfTI file with b-values and b-vectors, or an array with a gradient table. Set `folder` to yours; here a
# phantom stands in, made as a scanner would leave it.

# %%
import pathlib

import nibabel
import numpy as np

import cingulum

folder = pathlib.Path("phantom")
if not folder.exists():
    cingulum.phantom(preset="crossing", voxel_size=3, scheme="dirs64-b1000", out=folder)

# %% [markdown]
# `info` says what a file is, before anything is computed.

# %%
about = cingulum.info(folder / "dwi.nii.gz")
print({name: about["files"][0][name] for name in ("content", "shape", "voxel_mm", "axis_codes")})

# %% [markdown]
# Fits take files or arrays. Without a mask one is made. The check of the b-vectors runs first: where they are in other
# axes than they should be, the fit ends with a sentence that names the frame that fits, and `bvec_frame` sets it.

# %%
files = {"bvals": folder / "dwi.bval", "bvecs": folder / "dwi.bvec", "mask": folder / "mask.nii.gz"}
tensors = cingulum.fit(folder / "dwi.nii.gz", model="dti", **files)
print(tensors, "FA in the mask:", round(float(tensors.fa[tensors.mask].mean()), 3))

# %% [markdown]
# Spherical deconvolution gives fibre orientations; `peaks` are their maxima. Harmonics are in DIPY's basis and axes.

# %%
csd = cingulum.fit(folder / "dwi.nii.gz", model="csd", **files)
peaks = csd.peaks(3)
print("response:", csd.results["response"]["eigenvalues"])
print("voxels with two fibres:", int((np.linalg.norm(peaks[..., 1, :], axis=-1) > 0).sum()))

# %% [markdown]
# The same from arrays: images of nibabel, gradient tables of DIPY and plain arrays are taken, and read where they lie if
# they are float32 with x fastest.

# %%
image = nibabel.Nifti1Image.from_filename(folder / "dwi.nii.gz")
gradients = (np.loadtxt(files["bvals"]), np.loadtxt(files["bvecs"]))
same = cingulum.fit(image, gradients, model="csd", mask=nibabel.load(files["mask"]))
assert np.array_equal(same.sh, csd.sh)

# %% [markdown]
# Tracking from the fit, stopped by FA. Seeds lie in a mask, at places of yours, or everywhere the map passes.

# %%
tracks = cingulum.track(csd, dg="prob", stop_map=tensors.fa, stop_threshold=0.15, seed_mask=tensors.fa > 0.4, nseeds=1000)
long = tracks[tracks.lengths > 20]
print(f"{len(long)} of {len(tracks)} streamlines are longer than 20 mm")
long.save("own.trk", force=True)

# %% [markdown]
# Ten million seeds fit into the same memory: with `out` streamlines go to the file as they are made, and
# `track_batches` hands them out piece by piece.

# %%
points = 0
for batch in cingulum.track_batches(csd, dg="prob", stop_map=tensors.fa, stop_threshold=0.15, nseeds=2000, chunk_size=500):
    points += len(batch.positions)
print(points, "points")
