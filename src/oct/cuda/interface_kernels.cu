// The tissue interface. log_box: a thread of a strip goes down one column of a plane and keeps the sums of all windows
// that hold its present row; a batch of finished rows goes through shared memory to the sums along x. derivative_peak:
// a thread per A-line makes a batch of responses from each sample that it reads, or keeps all sums that hold a sample.
#include <utility>

#include "oct/cuda/oct_grid.cuh"
#include "oct/kernel/interface_line.hpp"

namespace cingulum::oct {
namespace {

constexpr unsigned line_block = 64;

// tissue_log without a branch, so that logarithms of a batch run beside each other. The limit is that of
// numerics::logarithm for positive numbers, which are all that matter; the compiler then leaves out its own.
__device__ float straight_log(float value) {
  const std::uint32_t bits = min(numerics::float_bits(value), numerics::largest_finite_bits);
  const float logarithm = numerics::logarithm(numerics::bits_float(bits));
  return value > 0.0f ? logarithm : value;
}

// One sample more: window t had t samples before. The sums move up as they grow, so that no register is copied.
template <unsigned window>
__device__ void grow_windows(float (&sums)[window], float sample) {
#pragma unroll
  for (unsigned t = window - 1; t > 0; --t) sums[t] = sums[t - 1] + sample;
  sums[0] = 0.0f + sample;
}

template <unsigned window>
__global__ void __launch_bounds__(log_box_threads, 5) log_box_kernel(LogBoxRecord record, const float* in, float* out) {
  constexpr unsigned outputs = log_box_outputs(window);
  constexpr unsigned segments = outputs / log_box_batch;
  constexpr int batch = log_box_batch;
  constexpr int below = window / 2;
  constexpr int ahead = static_cast<int>(window) - 1 - below;
  // Rows before the first output, so many that no batch is broken.
  constexpr int lead = (static_cast<int>(window) - 1 + batch - 1) / batch * batch;
  __shared__ float buffers[2][log_box_batch * log_box_pitch];
  const int height = static_cast<int>(record.y);
  const int width = static_cast<int>(record.x);
  const int x0 = static_cast<int>(blockIdx.x * outputs);
  const int y0 = static_cast<int>(blockIdx.y * log_box_block_rows);
  const int y1 = min(y0 + static_cast<int>(log_box_block_rows), height);
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const int column = x0 - below + static_cast<int>(threadIdx.x);
  const bool taken = column < width + ahead;
  const float* const from = in + blockIdx.z * plane + (taken ? reflected(column, width) : 0);
  float* const to = out + blockIdx.z * plane;
  const bool use_log = record.use_log != 0;
  const bool quads = record.x % 4 == 0;
  const unsigned place = log_box_place(threadIdx.x);
  const unsigned row = threadIdx.x / segments;
  const unsigned segment = threadIdx.x % segments;
  const int x = x0 + static_cast<int>(segment * log_box_batch);

  float values[log_box_batch];
  const auto load = [&](int first) {
    if (first >= 0 && first + batch <= height) {
      const float* next = from + static_cast<std::uint64_t>(first) * record.x;
#pragma unroll
      for (int i = 0; i < batch; ++i, next += record.x) values[i] = __ldcs(next);
    } else {
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        values[i] = from[static_cast<std::uint64_t>(reflected(first + i, height)) * record.x];
      }
    }
  };
  float sums[window];
#pragma unroll
  for (unsigned t = 0; t < window; ++t) sums[t] = 0.0f;
  if (taken) load(y0 - lead + ahead);
  for (int y = y0 - lead; y < y1; y += batch) {
    float* const buffer = buffers[(static_cast<unsigned>(y) / log_box_batch) % 2];
    if (taken) {
      float samples[log_box_batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) samples[i] = use_log ? straight_log(values[i]) : values[i];
      // The next batch is on its way while this one is summed.
      if (y + batch < y1) load(y + batch + ahead);
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        grow_windows(sums, samples[i]);
        if (y >= y0) buffer[i * log_box_pitch + place] = sums[window - 1];
      }
    }
    if (y < y0) continue;
    // One barrier a batch: who writes into a buffer again has passed the barrier behind its last reader.
    __syncthreads();
    if (row >= log_box_batch || y + static_cast<int>(row) >= y1 || x >= width) continue;
    const float* const line = buffer + row * log_box_pitch + segment;
    float boxes[log_box_batch];
#pragma unroll
    for (unsigned b = 0; b < log_box_batch; ++b) boxes[b] = 0.0f;
#pragma unroll
    for (unsigned j = 0; j < window + log_box_batch - 1; ++j) {
      const float sample = line[log_box_place(j)];
#pragma unroll
      for (unsigned b = 0; b < log_box_batch; ++b) {
        if (j >= b && j < b + window) boxes[b] = boxes[b] + sample;
      }
    }
#pragma unroll
    for (unsigned b = 0; b < log_box_batch; ++b) boxes[b] = boxes[b] * record.scale;
    float* const target = to + (static_cast<std::uint64_t>(y) + row) * record.x + static_cast<unsigned>(x);
    if (quads && x + batch <= width) {
      reinterpret_cast<float4*>(target)[0] = make_float4(boxes[0], boxes[1], boxes[2], boxes[3]);
      reinterpret_cast<float4*>(target)[1] = make_float4(boxes[4], boxes[5], boxes[6], boxes[7]);
    } else {
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        if (x + b < width) target[b] = boxes[b];
      }
    }
  }
}

using LogBoxKernel = void (*)(LogBoxRecord, const float*, float*);
// A window is known when a kernel is compiled, so that its sums stay in registers.
template <std::size_t... before>
LogBoxKernel log_box_of(std::uint32_t window, std::index_sequence<before...>) {
  constexpr LogBoxKernel kernels[] = {log_box_kernel<before + 1>...};
  return kernels[window - 1];
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

// find_peak with weights that DerivativePeakRecord::odd describes: of 17 products of a sample 8 are computed, the
// middle one is zero and the others are their negatives. `weights` are the first 8.
template <class Load>
__device__ LinePeak find_odd_peak(std::int32_t count, const float (&weights)[odd_peak_radius], Load&& load) {
  constexpr int radius = odd_peak_radius;
  constexpr int taps = 2 * radius + 1;
  constexpr int batch = 8;
  LinePeak peak{};
  float sums[taps];
#pragma unroll
  for (int t = 0; t < taps; ++t) sums[t] = 0.0f;
  float samples[batch];
  const auto add_samples = [&](std::int32_t first, auto&& respond) {
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      float products[radius];
#pragma unroll
      for (int t = 0; t < radius; ++t) products[t] = weights[t] * samples[i];
#pragma unroll
      for (int t = taps - 1; t > radius; --t) sums[t] = sums[t - 1] - products[taps - 1 - t];
      sums[radius] = sums[radius - 1];
#pragma unroll
      for (int t = radius - 1; t > 0; --t) sums[t] = sums[t - 1] + products[t];
      sums[0] = 0.0f + products[0];
      respond(first + i - radius, sums[taps - 1]);
    }
  };
  for (std::int32_t first = -radius; first < count + radius; first += batch) {
    if (first > radius && first + batch <= count) {
#pragma unroll
      for (int i = 0; i < batch; ++i) samples[i] = load(static_cast<std::uint32_t>(first + i));
      add_samples(first, [&](std::int32_t at, float response) { peak.consider(static_cast<float>(at), response); });
    } else {
#pragma unroll
      for (int i = 0; i < batch; ++i) samples[i] = load(static_cast<std::uint32_t>(reflected(first + i, count)));
      add_samples(first, [&](std::int32_t at, float response) {
        if (at == 0) peak.begin(response);
        if (at > 0 && at < count) peak.consider(static_cast<float>(at), response);
      });
    }
  }
  return peak;
}

template <bool odd, bool sub_voxel>
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
  LinePeak peak{};
  if constexpr (odd) {
    float first_weights[odd_peak_radius];
#pragma unroll
    for (std::uint32_t t = 0; t < odd_peak_radius; ++t) first_weights[t] = weights[peak_batch - 1 + t];
    if (count > 0) peak = find_odd_peak(static_cast<std::int32_t>(count), first_weights, load);
  } else {
    peak = find_peak<float, bool>(count, record.radius, weights, false, load);
  }
  if (masked) {
    peak.at = masked_peak(peak, count, record.z, place);
    peak.before = peak.best;
    peak.after = peak.best;
  }
  float depth = interface_depth(peak, record.z, sub_voxel, record.lift);
  if (record.smooth_weights != 0) {
    LinePeak smooth = find_peak<float, bool>(count, record.radius, weights + padded, true, load);
    if (masked) smooth.at = masked_peak(smooth, count, record.z, place);
    if (smooth.at < depth) depth = smooth.at;
  }
  depths[line] = depth;
}

}  // namespace

cudaError_t launch_log_box(const CudaCall& call) {
  const std::uint32_t window = call.pointers.record<LogBoxRecord>().window;
  return launch_on(call, dim3(log_box_threads), log_box_of(window, std::make_index_sequence<log_box_most_window>{}));
}

cudaError_t launch_compress_lines(const CudaCall& call) {
  return launch_on(call, dim3(line_block), compress_lines_kernel);
}

cudaError_t launch_derivative_peak(const CudaCall& call) {
  const auto record = call.pointers.record<DerivativePeakRecord>();
  const unsigned padded = 2 * record.radius + 1 + 2 * (peak_batch - 1);
  const bool sub_voxel = record.sub_voxel != 0;
  const auto odd_kernel = sub_voxel ? derivative_peak_kernel<true, true> : derivative_peak_kernel<true, false>;
  const auto any_kernel = sub_voxel ? derivative_peak_kernel<false, true> : derivative_peak_kernel<false, false>;
  const auto kernel = record.odd != 0 ? odd_kernel : any_kernel;
  return launch_on(call, dim3(line_block), kernel, 4 * padded * (1 + record.smooth_weights));
}

}  // namespace cingulum::oct
