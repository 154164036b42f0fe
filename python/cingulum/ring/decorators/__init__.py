"""Functions as kernels and actors, and checks of what they are given."""

from .kernel import gpu_kernel, kernel
from .ring_kernel import ring_kernel
from .validators import validate_config, validate_message

__all__ = ["gpu_kernel", "kernel", "ring_kernel", "validate_config", "validate_message"]
