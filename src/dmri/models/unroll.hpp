// Marks before loops of at most 8 or 28 rounds that are to become straight code, so that their arrays live in
// registers; for host and CUDA. Used by the kernels of this folder.
#pragma once

#if defined(__CUDA_ARCH__)
#define CGL_UNROLL_8 _Pragma("unroll")
#define CGL_UNROLL_28 _Pragma("unroll")
#elif defined(__CUDACC__)  // the host half of a .cu file, where nothing runs
#define CGL_UNROLL_8
#define CGL_UNROLL_28
#else
#define CGL_UNROLL_8 _Pragma("GCC unroll 8")
#define CGL_UNROLL_28 _Pragma("GCC unroll 28")
#endif
