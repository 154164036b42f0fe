#include "zarr/byte_filters.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "formats/byte_order.hpp"

namespace cingulum::zarr {
namespace {

template <std::size_t element_bytes>
void swap_elements_of(std::span<const std::byte> in, std::span<std::byte> out) {
  using Number = UnsignedOfSize<element_bytes>;
  for (std::size_t at = 0; at + element_bytes <= in.size(); at += element_bytes) {
    store(out, at, swap_bytes(load<Number>(in, at)));
  }
}

// One plane of bytes after the other would read the input element_bytes times; blocks of elements stay in the cache.
constexpr std::size_t shuffle_block_elements = 1024;

template <std::size_t element_bytes>
void shuffle_elements_of(const std::byte* in, std::byte* out, std::size_t count) {
  for (std::size_t begin = 0; begin < count; begin += shuffle_block_elements) {
    const std::size_t end = std::min(count, begin + shuffle_block_elements);
    for (std::size_t b = 0; b < element_bytes; ++b) {
      std::byte* const plane = out + b * count;
      const std::byte* const bytes = in + b;
      for (std::size_t e = begin; e < end; ++e) plane[e] = bytes[e * element_bytes];
    }
  }
}

template <std::size_t element_bytes>
void unshuffle_elements_of(const std::byte* in, std::byte* out, std::size_t count) {
  // Gathered in registers: the compiler turns the group of neighbouring stores into interleavings of whole vectors.
  for (std::size_t e = 0; e < count; ++e) {
    for (std::size_t b = 0; b < element_bytes; ++b) out[e * element_bytes + b] = in[b * count + e];
  }
}

void shuffle_elements_of_any(std::size_t element_bytes, const std::byte* in, std::byte* out, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) {
    for (std::size_t b = 0; b < element_bytes; ++b) out[b * count + e] = in[e * element_bytes + b];
  }
}

void unshuffle_elements_of_any(std::size_t element_bytes, const std::byte* in, std::byte* out, std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) {
    for (std::size_t b = 0; b < element_bytes; ++b) out[e * element_bytes + b] = in[b * count + e];
  }
}

// `count` elements from places that are `stride` elements apart, one behind the other.
template <std::size_t element_bytes>
void gather_row(const std::byte* in, std::size_t stride, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out + i * element_bytes, in + i * stride * element_bytes, element_bytes);
  }
}

void gather_row_of_any(std::size_t element_bytes, const std::byte* in, std::size_t stride, std::size_t count,
                       std::byte* out) {
  if (stride == 1) {
    std::memcpy(out, in, count * element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1: return gather_row<1>(in, stride, count, out);
    case 2: return gather_row<2>(in, stride, count, out);
    case 4: return gather_row<4>(in, stride, count, out);
    case 8: return gather_row<8>(in, stride, count, out);
    case 16: return gather_row<16>(in, stride, count, out);
    default: break;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out + i * element_bytes, in + i * stride * element_bytes, element_bytes);
  }
}

}  // namespace

void swap_elements(std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out) {
  switch (element_bytes) {
    case 2: return swap_elements_of<2>(in, out);
    case 4: return swap_elements_of<4>(in, out);
    case 8: return swap_elements_of<8>(in, out);
    default: break;
  }
  std::copy(in.begin(), in.end(), out.begin());
  if (element_bytes > 1) swap_in_place(out, element_bytes);
}

void shuffle_elements(std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out) {
  if (element_bytes <= 1) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  const std::size_t count = in.size() / element_bytes;
  switch (element_bytes) {
    case 2: return shuffle_elements_of<2>(in.data(), out.data(), count);
    case 4: return shuffle_elements_of<4>(in.data(), out.data(), count);
    case 8: return shuffle_elements_of<8>(in.data(), out.data(), count);
    case 16: return shuffle_elements_of<16>(in.data(), out.data(), count);
    default: return shuffle_elements_of_any(element_bytes, in.data(), out.data(), count);
  }
}

void unshuffle_elements(std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out) {
  if (element_bytes <= 1) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  const std::size_t count = in.size() / element_bytes;
  switch (element_bytes) {
    case 2: return unshuffle_elements_of<2>(in.data(), out.data(), count);
    case 4: return unshuffle_elements_of<4>(in.data(), out.data(), count);
    case 8: return unshuffle_elements_of<8>(in.data(), out.data(), count);
    case 16: return unshuffle_elements_of<16>(in.data(), out.data(), count);
    default: return unshuffle_elements_of_any(element_bytes, in.data(), out.data(), count);
  }
}

void permute_dimensions(std::span<const std::uint64_t> shape, std::span<const std::uint32_t> order,
                        std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out) {
  if (in.empty()) return;
  const std::size_t rank = shape.size();
  if (rank == 0) {
    std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  std::vector<std::size_t> in_stride(rank, 1);  // in elements
  for (std::size_t d = rank - 1; d-- > 0;) in_stride[d] = in_stride[d + 1] * static_cast<std::size_t>(shape[d + 1]);
  std::vector<std::size_t> extent(rank), stride(rank), index(rank, 0);
  for (std::size_t d = 0; d < rank; ++d) {
    extent[d] = static_cast<std::size_t>(shape[order[d]]);
    stride[d] = in_stride[order[d]];
  }
  const std::size_t last = rank - 1;
  std::size_t from = 0, to = 0;
  while (true) {
    gather_row_of_any(element_bytes, in.data() + from * element_bytes, stride[last], extent[last],
                      out.data() + to * element_bytes);
    to += extent[last];
    std::size_t d = last;
    while (d-- > 0) {
      from += stride[d];
      if (++index[d] < extent[d]) break;
      from -= stride[d] * extent[d];
      index[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) return;
  }
}

void unpermute_dimensions(std::span<const std::uint64_t> shape, std::span<const std::uint32_t> order,
                          std::size_t element_bytes, std::span<const std::byte> in, std::span<std::byte> out) {
  std::vector<std::uint64_t> permuted_shape(shape.size());
  std::vector<std::uint32_t> inverse(order.size());
  for (std::size_t d = 0; d < order.size(); ++d) {
    permuted_shape[d] = shape[order[d]];
    inverse[order[d]] = static_cast<std::uint32_t>(d);
  }
  permute_dimensions(permuted_shape, inverse, element_bytes, in, out);
}

}  // namespace cingulum::zarr
