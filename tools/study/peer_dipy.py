#!/usr/bin/env python3
"""DIPY on the fits of a condition, with its own defaults: peer_dipy.py METHOD FOLDER KEPT SEEDS FA KEY OUT.tck
Seeds are drawn where FA passes, in batches, until so many streamlines of 2 mm and more are kept or so many seeds are used."""
import sys

import nibabel as nib
import numpy as np
from dipy.core.gradients import gradient_table
from dipy.core.sphere import Sphere
from dipy.data import default_sphere
from dipy.reconst.shm import OpdtModel, order_from_ncoef, sh_to_sf
from dipy.tracking import tracker
from dipy.tracking.stopping_criterion import ThresholdStoppingCriterion


def load(path):
    return np.asarray(nib.load(path).dataobj, dtype=np.float64)


def amplitudes(folder, affine, mask):
    """Our fODF on DIPY's sphere. Its series are in the world's axes; DIPY tracks in the image's."""
    axes = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    turned = Sphere(xyz=default_sphere.vertices @ axes.T)
    sh = load(f"{folder}/fod.nii")
    sf = np.zeros(sh.shape[:3] + (len(default_sphere.vertices),))
    sf[mask] = np.maximum(sh_to_sf(sh[mask], turned, sh_order_max=order_from_ncoef(sh.shape[-1]), basis_type="tournier07",
                                   legacy=False), 0)
    return sf


def bootstrap(folder, affine):
    vectors = np.loadtxt(f"{folder}/dwi.bvec").T.copy()
    if np.linalg.det(affine[:3, :3]) > 0:
        vectors[:, 0] *= -1
    table = gradient_table(np.loadtxt(f"{folder}/dwi.bval"), bvecs=vectors)
    return {"data": load(f"{folder}/dwi.nii"), "model": OpdtModel(table, sh_order_max=4, smooth=0.006, min_signal=1)}


def main():
    method, folder = sys.argv[1:3]
    kept, seeds, threshold, key, out = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]), sys.argv[7]
    affine = nib.load(f"{folder}/fa.nii").affine
    mask = load(f"{folder}/mask.nii.gz") > 0
    fa = np.where(mask, load(f"{folder}/fa.nii"), 0)
    track = {"prob": tracker.probabilistic_tracking, "det": tracker.deterministic_tracking,
             "closest": tracker.closestpeak_tracking, "boot": tracker.bootstrap_tracking}[method]
    source = bootstrap(folder, affine) if method == "boot" else {"sf": amplitudes(folder, affine, mask)}
    voxels = np.argwhere(fa > threshold)
    random = np.random.default_rng(key)
    criterion = ThresholdStoppingCriterion(fa, threshold)
    lines, used = [], 0
    while len(lines) < kept and used < seeds and len(voxels):
        count = min(max(kept - len(lines), 100), seeds - used)
        places = voxels[random.integers(len(voxels), size=count)] + random.uniform(-0.5, 0.5, (count, 3))
        world = places @ affine[:3, :3].T + affine[:3, 3]
        used += count
        for line in track(world, criterion, affine, sphere=default_sphere, random_seed=key + used, nbr_threads=1, **source):
            line = np.asarray(line)
            if len(line) > 1 and np.linalg.norm(np.diff(line, axis=0), axis=1).sum() >= 2:
                lines.append(line.astype(np.float32))
    nib.streamlines.save(nib.streamlines.Tractogram(lines[:kept], affine_to_rasmm=np.eye(4)), out)


main()
