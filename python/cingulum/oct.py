"""Reconstruction of optical coherence tomography: not there yet."""

raise ImportError("cingulum.oct: the reconstruction of OCT is not in this version of Cingulum yet")
