"""Streamlines of a batch of seeds."""

from ..generic_tracker import SeedBatchPropagator

__all__ = ["SeedBatchPropagator"]
