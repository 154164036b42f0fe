// Included before the files of src/tract/cuda where they are compiled once more for bench_track_contracted: gives other
// names to whatever a linker would otherwise take for the library's.
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
