// Levels of a pyramid: each made of the finer one, with about half of its elements along the dimensions of space, and
// covering exactly the same box. An element of the coarser level is the mean over the part of the finer one that it
// covers: of 2 neighbours a dimension where the size is even; where it is odd, neighbours that it covers in part count
// in part. So its centre lies where the metadata say (ome_zarr.hpp, level_of_size), also at odd sizes. Levels of labels
// take the element at the centre instead. Memory is bounded whatever the sizes, and the elements do not depend on the
// number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/cancel.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "zarr/array.hpp"
#include "zarr/element_source.hpp"
#include "zarr/level_file.hpp"

namespace cingulum::zarr {

enum class Downsampling : std::uint8_t {
  mean,     // in float64; rounded to nearest even for integers
  nearest,  // labels, booleans
};

// Sizes of the levels, the finest first. Dimensions of `halved` are halved, rounded up, until there are `levels`, or,
// where it is absent, until a level is no larger than `chunk` along each of them. A size that stays as it is ends it.
[[nodiscard]] std::vector<Shape> pyramid_shapes(const Shape& finest, const std::vector<bool>& halved,
                                                std::optional<std::size_t> levels, const Shape& chunk);

// A box of the level of `shape` that belongs to `finer`; both have the same rank, at least 1. any thread
[[nodiscard]] Status downsample(const ElementSource& finer, std::span<const std::uint64_t> shape, Downsampling how,
                                const Region& box, std::span<std::byte> to);

struct LevelOptions {
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  CancelToken cancel = {};
  std::uint64_t memory_bytes = std::uint64_t{256} << 20U;  // of elements that are made before they are written
  Progress* progress = nullptr;                            // advanced by elements
};

// Makes all of `level` and writes it to `output`; to `kept` too, where a further level is made of it (may be null).
[[nodiscard]] Status write_level(const ElementSource& finer, Downsampling how, const Array& level, StoreOutput& output,
                                 LevelFile* kept, const LevelOptions& options);

}  // namespace cingulum::zarr
