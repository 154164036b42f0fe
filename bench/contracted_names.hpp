// Macros that rename what the files of src/tract/cuda define. Included before those files where they are compiled a
// second time, for bench_track_contracted: without them the linker would take the second copy for the library's
// functions.
#pragma once

#define AnyShape ContractedAnyShape
#define amplitude_kernels contracted_amplitude_kernels
#define boot_kernels contracted_boot_kernels
#define brick_kernel contracted_brick_kernel
#define float16_kernels contracted_float16_kernels
#define launch_compaction contracted_launch_compaction
#define make_cuda_tracker make_contracted_cuda_tracker
#define ptt_kernels contracted_ptt_kernels
#define series_kernels contracted_series_kernels
#define vector_kernels contracted_vector_kernels
