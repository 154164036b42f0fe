// CGL_UNROLL before a loop whose numbers must stay in registers: device compilers unroll it whole, the host decides for
// itself. Used by the kernels that keep a step in registers.
#pragma once

#if defined(__CUDA_ARCH__)
#define CGL_UNROLL _Pragma("unroll")
#else
#define CGL_UNROLL
#endif
