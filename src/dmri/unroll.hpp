// The mark before a loop of at most eight rounds that is to become straight code, so that its arrays live in registers;
// for host and CUDA. Used by the kernels of this folder.
#pragma once

#if defined(__CUDACC__)
#define CGL_UNROLL_8 _Pragma("unroll")
#else
#define CGL_UNROLL_8 _Pragma("GCC unroll 8")
#endif
