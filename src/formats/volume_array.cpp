#include "formats/volume_array.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace cingulum {
namespace {

// Calls body(pointer to numbers of the type).
template <class Body>
void with_numbers(const void* numbers, ElementType type, Body&& body) {
  using Code = ElementType::Code;
  switch (type.code) {
    case Code::floating:
      return type.bits == 64 ? body(static_cast<const double*>(numbers)) : body(static_cast<const float*>(numbers));
    case Code::integer:
      switch (type.bits) {
        case 8: return body(static_cast<const std::int8_t*>(numbers));
        case 16: return body(static_cast<const std::int16_t*>(numbers));
        case 32: return body(static_cast<const std::int32_t*>(numbers));
        default: return body(static_cast<const std::int64_t*>(numbers));
      }
    default:
      switch (type.bits) {
        case 8: return body(static_cast<const std::uint8_t*>(numbers));
        case 16: return body(static_cast<const std::uint16_t*>(numbers));
        case 32: return body(static_cast<const std::uint32_t*>(numbers));
        default: return body(static_cast<const std::uint64_t*>(numbers));
      }
  }
}

}  // namespace

VolumeArray::VolumeArray(std::span<const float> values, std::size_t voxels)
    : first_(values.data()),
      type_(element_type_of<float>()),
      shape_({voxels, 1, 1, voxels == 0 ? 0 : values.size() / voxels}),
      steps_({1, 0, 0, static_cast<std::int64_t>(voxels)}) {
  assert(voxels == 0 || values.size() % voxels == 0);
}

VolumeArray::VolumeArray(const void* first, ElementType type, const std::array<std::size_t, 4>& shape,
                         const std::array<std::int64_t, 4>& steps)
    : first_(first), type_(type), shape_(shape), steps_(steps) {
  assert(is_readable(type));
  // Rows that follow each other are one.
  for (const std::size_t axis : {std::size_t{1}, std::size_t{2}}) {
    const bool follows = steps_[axis] == steps_[0] * static_cast<std::int64_t>(shape_[0]);
    if (!follows && shape_[axis] != 1) break;
    shape_[0] *= std::exchange(shape_[axis], 1);
  }
}

bool VolumeArray::is_readable(ElementType type) noexcept {
  using Code = ElementType::Code;
  if (type.code == Code::floating) return type.bits == 32 || type.bits == 64;
  if (type.code == Code::boolean) return type.bits == 8;
  return (type.code == Code::integer || type.code == Code::unsigned_integer) &&
         (type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64);
}

std::span<const float> VolumeArray::as_they_lie() const {
  const bool one_row = shape_[1] * shape_[2] == 1 && (steps_[0] == 1 || shape_[0] == 1);
  const bool volumes_follow = shape_[3] == 1 || steps_[3] == static_cast<std::int64_t>(shape_[0]);
  if (empty() || type_ != element_type_of<float>() || !one_row || !volumes_follow) return {};
  return {static_cast<const float*>(first_), voxels() * volumes()};
}

void VolumeArray::read(std::size_t volume, std::size_t first, std::span<float> to) const {
  assert(volume < volumes() && first + to.size() <= voxels());
  with_numbers(first_, type_, [&](const auto* numbers) {
    const auto* const of_volume = numbers + static_cast<std::int64_t>(volume) * steps_[3];
    std::size_t done = 0;
    while (done < to.size()) {
      const std::size_t x = (first + done) % shape_[0];
      const std::size_t row = (first + done) / shape_[0];
      const std::size_t count = std::min(shape_[0] - x, to.size() - done);
      const auto* const from = of_volume + static_cast<std::int64_t>(x) * steps_[0] +
                               static_cast<std::int64_t>(row % shape_[1]) * steps_[1] +
                               static_cast<std::int64_t>(row / shape_[1]) * steps_[2];
      float* const here = to.data() + done;
      if (steps_[0] == 1) {
        for (std::size_t i = 0; i < count; ++i) here[i] = static_cast<float>(from[i]);
      } else {
        for (std::size_t i = 0; i < count; ++i) {
          here[i] = static_cast<float>(from[static_cast<std::int64_t>(i) * steps_[0]]);
        }
      }
      done += count;
    }
  });
}

void VolumeArray::read_records(std::span<const std::uint32_t> voxels, std::span<float> records) const {
  assert(records.size() == voxels.size() * volumes());
  // Sixteen floats are a cache line, of the records and where volumes lie side by side of the source, too.
  constexpr std::size_t volumes_at_once = 16;
  with_numbers(first_, type_, [&](const auto* numbers) {
    for (std::size_t group = 0; group < volumes(); group += volumes_at_once) {
      const std::size_t count = std::min(volumes_at_once, volumes() - group);
      const auto* const of_group = numbers + static_cast<std::int64_t>(group) * steps_[3];
      std::size_t row_begin = 0, row_end = 0;
      std::int64_t row_place = 0;
      for (std::size_t i = 0; i < voxels.size(); ++i) {
        const std::size_t voxel = voxels[i];
        if (voxel >= row_end) {
          const std::size_t row = voxel / shape_[0];
          row_begin = row * shape_[0];
          row_end = row_begin + shape_[0];
          row_place = static_cast<std::int64_t>(row % shape_[1]) * steps_[1] +
                      static_cast<std::int64_t>(row / shape_[1]) * steps_[2];
        }
        const auto* const from = of_group + row_place + static_cast<std::int64_t>(voxel - row_begin) * steps_[0];
        float* const record = records.data() + i * volumes() + group;
        for (std::size_t j = 0; j < count; ++j) {
          record[j] = static_cast<float>(from[static_cast<std::int64_t>(j) * steps_[3]]);
        }
      }
    }
  });
}

Result<std::string> VolumeArray::hash(const CancelToken& cancel) const {
  constexpr std::size_t numbers_at_once = std::size_t{1} << 16U;
  Hash128 hash;
  const auto add = [&](std::span<const float> numbers) -> Status {
    for (std::size_t first = 0; first < numbers.size(); first += numbers_at_once) {
      CGL_TRY(cancel.check());
      hash.add(std::as_bytes(numbers.subspan(first, std::min(numbers_at_once, numbers.size() - first))));
    }
    return {};
  };
  if (const std::span<const float> numbers = as_they_lie(); !numbers.empty()) {
    CGL_TRY(add(numbers));
    return hash.hex();
  }
  return catch_out_of_memory([&]() -> Result<std::string> {
    std::vector<float> block;
    // Where volumes lie side by side, a cache line holds the same voxel of several: these are read together, as many as
    // fit into a block, and hashed one after the other.
    constexpr std::size_t most_numbers = std::size_t{1} << 24U;
    const bool side_by_side = std::abs(steps_[3]) < std::abs(steps_[0]);
    const std::size_t together =
        side_by_side ? std::clamp<std::size_t>(most_numbers / std::max<std::size_t>(voxels(), 1), 1, 16) : 1;
    if (together == 1) {
      block.resize(std::min(numbers_at_once, voxels()));
      for (std::size_t volume = 0; volume < volumes(); ++volume) {
        for (std::size_t first = 0; first < voxels(); first += block.size()) {
          const auto piece = std::span(block).first(std::min(block.size(), voxels() - first));
          read(volume, first, piece);
          CGL_TRY(add(piece));
        }
      }
      return hash.hex();
    }
    block.resize(together * voxels());
    constexpr std::size_t voxels_at_once = 1024;
    for (std::size_t group = 0; group < volumes(); group += together) {
      const std::size_t count = std::min(together, volumes() - group);
      for (std::size_t first = 0; first < voxels(); first += voxels_at_once) {
        CGL_TRY(cancel.check());
        const std::size_t piece = std::min(voxels_at_once, voxels() - first);
        for (std::size_t j = 0; j < count; ++j) {
          read(group + j, first, std::span(block).subspan(j * voxels() + first, piece));
        }
      }
      CGL_TRY(add(std::span(block).first(count * voxels())));
    }
    return hash.hex();
  });
}

}  // namespace cingulum
