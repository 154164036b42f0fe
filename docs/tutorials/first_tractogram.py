# %% [markdown]
# # A first tractogram
# Nothing is needed but the package. The data are a phantom: a brain-like object whose fibres are known, so that the
# result can be judged.

# %%
import numpy as np

import cingulum

cingulum.phantom(preset="crossing", voxel_size=3, scheme="dirs64-b1000", out="phantom")

# %% [markdown]
# A phantom is a folder as a scanner's files would be: `dwi.nii.gz` with its `dwi.bval` and `dwi.bvec`, and a mask. The
# truth lies beside them. One call goes from the series to streamlines; `dg` names how directions are chosen: `prob`
# draws them from the fibre orientations in each place.

# %%
tracks = cingulum.track("phantom/dwi.nii.gz", mask="phantom/mask.nii.gz", dg="prob", nseeds=1500)
tracks

# %% [markdown]
# Positions are in millimetres, in the space of the image. A streamline is an array; lengths, seeds and the reasons why
# streamlines ended are there for all of them at once.

# %%
print(tracks)
print("first streamline:", tracks[0].shape, "mean length:", round(float(tracks.lengths.mean()), 1), "mm")
codes, counts = np.unique(tracks.end_reasons, return_counts=True)
for code, count in zip(codes, counts):
    print(f"{tracks.end_reason_names[int(code)]}: {count}")

# %% [markdown]
# Files are those of the program, byte for byte, with a sidecar that says how to make them again. The truth says how many
# streamlines connect what is connected.

# %%
tracks.save("first.trx")
shares = cingulum.score("first.trx", truth="phantom")
print("valid:", round(shares["valid"], 3), "invalid:", round(shares["invalid"], 3))

# %% [markdown]
# The same numbers come out on every machine and device: the seed of the random numbers is an argument, and so is the
# device.

# %%
again = cingulum.track("phantom/dwi.nii.gz", mask="phantom/mask.nii.gz", dg="prob", nseeds=1500, device="cpu", threads=1)
assert (again.positions == tracks.positions).all()

# %% [markdown]
# A page about the tractogram, with views, lengths and the score, opens in any browser.

# %%
cingulum.report("first.trx", truth="phantom", out="first.html")
