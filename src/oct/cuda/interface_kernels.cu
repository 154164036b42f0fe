// The tissue interface. log_box: a block takes a strip of a plane and goes down its rows, a batch at a time; a ring of
// rows in shared memory holds the logarithms of a window, so that each is computed once. derivative_peak: a thread per
// A-line makes a batch of responses from each sample that it reads.
#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/interface_line.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned strip = 128;  // outputs along x, and threads
constexpr unsigned line_block = 64;
constexpr unsigned segments = strip / log_box_batch;  // threads of a row in the sums along x
static_assert(strip / segments == log_box_batch);

// Threads that read every eighth number meet in one bank; one place more per eight spreads them.
__device__ unsigned skewed(unsigned column) {
  return column + column / 8;
}

// Fresh sums of eight outputs that begin at samples 0 to 7; sample(j) gives sample j of window + 7.
template <class Sample>
__device__ void sums_of_windows(unsigned window, Sample&& sample, float (&sums)[log_box_batch]) {
#pragma unroll
  for (unsigned b = 0; b < log_box_batch; ++b) sums[b] = 0.0f;
  if (window >= log_box_batch) {
#pragma unroll
    for (unsigned j = 0; j < log_box_batch - 1; ++j) {
      const float value = sample(j);
#pragma unroll
      for (unsigned b = 0; b <= j; ++b) sums[b] = sums[b] + value;
    }
    for (unsigned j = log_box_batch - 1; j < window; ++j) {
      const float value = sample(j);
#pragma unroll
      for (unsigned b = 0; b < log_box_batch; ++b) sums[b] = sums[b] + value;
    }
#pragma unroll
    for (unsigned j = 0; j < log_box_batch - 1; ++j) {
      const float value = sample(window + j);
#pragma unroll
      for (unsigned b = j + 1; b < log_box_batch; ++b) sums[b] = sums[b] + value;
    }
    return;
  }
  for (unsigned j = 0; j < window + log_box_batch - 1; ++j) {
    const float value = sample(j);
#pragma unroll
    for (unsigned b = 0; b < log_box_batch; ++b) {
      if (j >= b && j < b + window) sums[b] = sums[b] + value;
    }
  }
}

__global__ void __launch_bounds__(strip) log_box_kernel(LogBoxRecord record, const float* in, float* out) {
  extern __shared__ float memory[];
  const unsigned window = record.window;
  const unsigned columns = strip + window - 1;
  const unsigned ring_rows = window - 1 + log_box_batch;
  const unsigned pitch = skewed(columns) + 1;
  float* const sums = memory + ring_rows * columns;
  const int below = static_cast<int>(window / 2);
  const int height = static_cast<int>(record.y);
  const int width = static_cast<int>(record.x);
  const int x0 = static_cast<int>(blockIdx.x * strip);
  const unsigned y0 = blockIdx.y * log_box_block_rows;
  const unsigned y1 = min(y0 + log_box_block_rows, record.y);
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const float* const from = in + blockIdx.z * plane;
  float* const to = out + blockIdx.z * plane;
  const bool use_log = record.use_log != 0;
  const unsigned row = threadIdx.x / segments;
  const unsigned segment = threadIdx.x % segments;
  const bool quads = record.x % 4 == 0;

  unsigned loaded = 0;  // rows, counted from y0 - below
  for (unsigned y = y0; y < y1; y += log_box_batch) {
    // A batch of loads is under way before the first logarithm waits for one.
    for (const unsigned end = y - y0 + ring_rows; loaded < end; loaded += log_box_batch) {
      const unsigned slot = loaded % ring_rows;
      for (unsigned c = threadIdx.x; c < columns; c += strip) {
        const float* const column = from + reflected(x0 - below + static_cast<int>(c), width);
        float values[log_box_batch];
#pragma unroll
        for (unsigned i = 0; i < log_box_batch; ++i) {
          if (loaded + i >= end) break;
          values[i] = column[static_cast<std::uint64_t>(reflected(static_cast<int>(y0 + loaded + i) - below, height)) *
                             record.x];
        }
#pragma unroll
        for (unsigned i = 0; i < log_box_batch; ++i) {
          if (loaded + i >= end) break;
          const unsigned row_of_ring = slot + i < ring_rows ? slot + i : slot + i - ring_rows;
          memory[row_of_ring * columns + c] = use_log ? tissue_log(values[i]) : values[i];
        }
      }
    }
    loaded = y - y0 + ring_rows;
    __syncthreads();
    const unsigned first = (y - y0) % ring_rows;
    for (unsigned c = threadIdx.x; c < columns; c += strip) {
      float batch[log_box_batch];
      sums_of_windows(
          window,
          [&](unsigned j) {
            const unsigned at = first + j;
            return memory[(at < ring_rows ? at : at - ring_rows) * columns + c];
          },
          batch);
#pragma unroll
      for (unsigned b = 0; b < log_box_batch; ++b) sums[b * pitch + skewed(c)] = batch[b];
    }
    __syncthreads();
    float batch[log_box_batch];
    const float* const line = sums + row * pitch;
    sums_of_windows(
        window, [&](unsigned j) { return line[skewed(segment * log_box_batch + j)]; }, batch);
    const unsigned x = static_cast<unsigned>(x0) + segment * log_box_batch;
    if (y + row < y1 && x < record.x) {
      float* const place = to + static_cast<std::uint64_t>(y + row) * record.x + x;
#pragma unroll
      for (unsigned b = 0; b < log_box_batch; ++b) batch[b] = batch[b] * record.scale;
      if (quads && x + log_box_batch <= record.x) {
        reinterpret_cast<float4*>(place)[0] = make_float4(batch[0], batch[1], batch[2], batch[3]);
        reinterpret_cast<float4*>(place)[1] = make_float4(batch[4], batch[5], batch[6], batch[7]);
      } else {
#pragma unroll
        for (unsigned b = 0; b < log_box_batch; ++b) {
          if (x + b < record.x) place[b] = batch[b];
        }
      }
    }
  }
}

__global__ void __launch_bounds__(line_block)
    compress_lines_kernel(CompressLinesRecord record, float* volume, const float* mask, std::uint32_t* places) {
  const std::uint32_t x = blockIdx.x * line_block + threadIdx.x;
  if (x >= record.x) return;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t line = std::uint64_t{blockIdx.y} * record.x + x;
  std::uint32_t kept = 0;
  for (std::uint32_t z = 0; z < record.z; ++z) {
    if (mask[z * plane + line] == 0.0f) continue;
    volume[kept * plane + line] = volume[z * plane + line];
    places[kept * plane + line] = z;
    ++kept;
  }
  places[record.z * plane + line] = kept;
}

__global__ void __launch_bounds__(line_block)
    derivative_peak_kernel(DerivativePeakRecord record, const float* volume, const float* table,
                           const std::uint32_t* all_places, float* depths) {
  extern __shared__ float weights[];
  const std::uint32_t padded = 2 * record.radius + 1 + 2 * (peak_batch - 1);
  for (std::uint32_t i = threadIdx.x; i < padded * (1 + record.smooth_weights); i += line_block) weights[i] = table[i];
  __syncthreads();
  const std::uint32_t x = blockIdx.x * line_block + threadIdx.x;
  if (x >= record.x) return;
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t line = std::uint64_t{blockIdx.y} * record.x + x;
  const float* const samples = volume + line;
  const std::uint32_t* const places = all_places + line;
  const bool masked = record.masked != 0;
  const std::uint32_t count = masked ? places[record.z * plane] : record.z;
  const auto load = [&](std::uint32_t z) { return samples[z * plane]; };
  const auto place = [&](std::uint32_t j) { return places[j * plane]; };
  LinePeak peak = find_peak<float, bool>(count, record.radius, weights, false, load);
  if (masked) {
    peak.at = masked_peak(peak, count, record.z, place);
    peak.before = peak.best;
    peak.after = peak.best;
  }
  float depth = interface_depth(peak, record.z, record.sub_voxel != 0, record.lift);
  if (record.smooth_weights != 0) {
    LinePeak smooth = find_peak<float, bool>(count, record.radius, weights + padded, true, load);
    if (masked) smooth.at = masked_peak(smooth, count, record.z, place);
    if (smooth.at < depth) depth = smooth.at;
  }
  depths[line] = depth;
}

}  // namespace

cudaError_t launch_log_box(const CudaCall& call) {
  const auto record = call.pointers.record<LogBoxRecord>();
  const unsigned columns = strip + record.window - 1;
  const unsigned shared =
      4 * ((record.window - 1 + log_box_batch) * columns + log_box_batch * (columns + columns / 8 + 1));
  const dim3 block(strip, 1, 1);
  log_box_kernel<<<blocks_for(call.threads, block), block, shared, call.stream>>>(record, call.pointers.at[0],
                                                                                  call.pointers.at[1]);
  return cudaGetLastError();
}

cudaError_t launch_compress_lines(const CudaCall& call) {
  const dim3 block(line_block, 1, 1);
  compress_lines_kernel<<<blocks_for(call.threads, block), block, 0, call.stream>>>(
      call.pointers.record<CompressLinesRecord>(), call.pointers.at[0], call.pointers.at[1],
      reinterpret_cast<std::uint32_t*>(call.pointers.at[2]));
  return cudaGetLastError();
}

cudaError_t launch_derivative_peak(const CudaCall& call) {
  const auto record = call.pointers.record<DerivativePeakRecord>();
  const unsigned padded = 2 * record.radius + 1 + 2 * (peak_batch - 1);
  const dim3 block(line_block, 1, 1);
  derivative_peak_kernel<<<blocks_for(call.threads, block), block, 4 * padded*(1 + record.smooth_weights),
                           call.stream>>>(record, call.pointers.at[0], call.pointers.at[1], call.pointers.words_at(2),
                                          call.pointers.at[3]);
  return cudaGetLastError();
}

}  // namespace cingulum::oct
