// The reference: the kernels on lanes in plain C++.
#include "numerics/lanes_portable.hpp"

#define CGL_LANES numerics::PortableLanes
#define CGL_KERNELS_NAME "portable"
#define CGL_KERNELS_FUNCTION portable_kernels
#include "tract/cpu/track_kernels.inc"
