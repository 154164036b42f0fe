#include "zarr/pyramid.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/bulk_memory.hpp"
#include "base/first_failure.hpp"
#include "zarr/chunk_boxes.hpp"
#include "zarr/element_numbers.hpp"
#include "zarr/row_major.hpp"

namespace cingulum::zarr {
namespace {

// Weights are products of two sizes.
constexpr std::uint64_t largest_extent = std::uint64_t{1} << 31U;

// One dimension of a level: element o covers [o * finer / coarser, (o + 1) * finer / coarser) of the finer one. Both
// sizes are divided by what they share, so that even sizes are 2 and 1.
struct Cover {
  std::uint64_t finer = 1;
  std::uint64_t coarser = 1;

  [[nodiscard]] std::uint64_t begin(std::uint64_t o) const { return o * finer / coarser; }
  [[nodiscard]] std::uint64_t end(std::uint64_t o) const { return ((o + 1) * finer + coarser - 1) / coarser; }
  // How much of finer element i is covered by o, of `finer` in all.
  [[nodiscard]] double weight(std::uint64_t o, std::uint64_t i) const {
    const std::uint64_t from = std::max(o * finer, i * coarser);
    const std::uint64_t to = std::min((o + 1) * finer, (i + 1) * coarser);
    return static_cast<double>(to - from);
  }
  // The element at the centre of o; the upper one of two.
  [[nodiscard]] std::uint64_t centre(std::uint64_t o) const { return (2 * o + 1) * finer / (2 * coarser); }
  [[nodiscard]] bool keeps() const { return finer == coarser; }
};

Cover cover_of(std::uint64_t finer, std::uint64_t coarser) {
  const std::uint64_t shared = std::max<std::uint64_t>(std::gcd(finer, coarser), 1);
  return {finer / shared, coarser / shared};
}

// The finer elements that a box needs.
Region finer_box(std::span<const Cover> covers, const Region& box) {
  Region result{Shape(box.shape.size()), Shape(box.shape.size())};
  for (std::size_t d = 0; d < box.shape.size(); ++d) {
    result.origin[d] = covers[d].begin(box.origin[d]);
    result.shape[d] = covers[d].end(box.origin[d] + box.shape[d] - 1) - result.origin[d];
  }
  return result;
}

// The mean along dimension 1 of (outer, extent, inner): weights in ascending order, then one division.
void reduce(std::span<const double> from, std::uint64_t outer, std::uint64_t from_begin, std::uint64_t from_extent,
            std::uint64_t begin, std::uint64_t extent, std::uint64_t inner, const Cover& cover, double* to) {
  const auto whole = static_cast<double>(cover.finer);
  for (std::uint64_t block = 0; block < outer; ++block) {
    const double* const source = from.data() + block * from_extent * inner;
    for (std::uint64_t o = begin; o < begin + extent; ++o, to += inner) {
      const std::uint64_t first = cover.begin(o);
      for (std::uint64_t i = first; i < cover.end(o); ++i) {
        const double weight = cover.weight(o, i);
        const double* const line = source + (i - from_begin) * inner;
        for (std::uint64_t j = 0; j < inner; ++j) {
          to[j] = i == first ? weight * line[j] : to[j] + weight * line[j];
        }
      }
      for (std::uint64_t j = 0; j < inner; ++j) to[j] /= whole;
    }
  }
}

// Plane by plane along the first dimension, so that only a few planes are numbers at a time: the last dimension is
// reduced first, the first one last.
void take_means(std::span<const std::byte> finer, const Region& source, std::span<const Cover> covers, ElementType type,
                const Region& box, std::span<std::byte> to) {
  const std::size_t rank = box.shape.size();
  const std::size_t numbers = numbers_of_element(type);
  const std::uint64_t source_plane = elements_of(source.shape) / source.shape[0] * numbers;
  const std::uint64_t plane = elements_of(box.shape) / box.shape[0] * numbers;
  const std::size_t source_plane_bytes = source_plane / numbers * type.bytes();
  const std::size_t plane_bytes = plane / numbers * type.bytes();
  std::vector<double> values, reduced, stack;
  for (std::uint64_t o = 0; o < box.shape[0]; ++o) {
    const std::uint64_t first = covers[0].begin(box.origin[0] + o);
    const std::uint64_t count = covers[0].end(box.origin[0] + o) - first;
    stack.resize(count * plane);
    for (std::uint64_t i = 0; i < count; ++i) {
      values.resize(source_plane);
      decode_numbers(type, finer.subspan((first + i - source.origin[0]) * source_plane_bytes, source_plane_bytes),
                     values);
      Shape extent = source.shape;
      std::uint64_t inner = numbers;
      for (std::size_t d = rank; d-- > 1;) {
        if (!covers[d].keeps()) {
          const std::uint64_t outer = elements_of(std::span(extent).subspan(1, d - 1));
          reduced.resize(outer * box.shape[d] * inner);
          reduce(values, outer, source.origin[d], extent[d], box.origin[d], box.shape[d], inner, covers[d],
                 reduced.data());
          std::swap(values, reduced);
          extent[d] = box.shape[d];
        }
        inner *= extent[d];
      }
      std::copy(values.begin(), values.end(), stack.begin() + static_cast<std::ptrdiff_t>(i * plane));
    }
    if (covers[0].keeps()) {
      values = stack;
    } else {
      values.resize(plane);
      reduce(stack, 1, first, count, box.origin[0] + o, 1, plane, covers[0], values.data());
    }
    encode_numbers(type, values, to.subspan(o * plane_bytes, plane_bytes));
  }
}

void take_centres(std::span<const std::byte> finer, const Region& source, std::span<const Cover> covers,
                  std::size_t element_bytes, const Region& box, std::span<std::byte> to) {
  const std::size_t last = box.shape.size() - 1;
  std::byte* target = to.data();
  for_each_row_of(box.shape, [&](std::span<const std::uint64_t> index) {
    std::uint64_t row = 0;
    for (std::size_t d = 0; d < last; ++d) {
      row = row * source.shape[d] + covers[d].centre(box.origin[d] + index[d]) - source.origin[d];
    }
    for (std::uint64_t o = 0; o < box.shape[last]; ++o, target += element_bytes) {
      const std::uint64_t element =
          row * source.shape[last] + covers[last].centre(box.origin[last] + o) - source.origin[last];
      std::memcpy(target, finer.data() + element * element_bytes, element_bytes);
    }
  });
}

}  // namespace

std::vector<Shape> pyramid_shapes(const Shape& finest, const std::vector<bool>& halved,
                                  std::optional<std::size_t> levels, const Shape& chunk) {
  std::vector<Shape> shapes = {finest};
  while (!levels || shapes.size() < *levels) {
    const Shape& last = shapes.back();
    bool larger = false;
    Shape next = last;
    for (std::size_t d = 0; d < next.size(); ++d) {
      if (!halved[d]) continue;
      larger = larger || last[d] > chunk[d];
      next[d] = last[d] - last[d] / 2;
    }
    if (next == last || (!levels && !larger)) break;
    shapes.push_back(std::move(next));
  }
  return shapes;
}

Status downsample(const ElementSource& finer, std::span<const std::uint64_t> shape, Downsampling how, const Region& box,
                  std::span<std::byte> to) {
  if (elements_of(box.shape) == 0) return {};
  std::vector<Cover> covers;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (finer.shape()[d] >= largest_extent) {
      return fail(ErrorKind::unavailable, "levels of arrays with {} or more elements along a dimension are not made",
                  largest_extent);
    }
    covers.push_back(cover_of(finer.shape()[d], shape[d]));
  }
  const Region source = finer_box(covers, box);
  BulkVector<std::byte> elements(elements_of(source.shape) * finer.type().bytes());
  CGL_TRY(finer.read(source, elements));
  if (how == Downsampling::nearest || finer.type().code == ElementType::Code::boolean) {
    take_centres(elements, source, covers, finer.type().bytes(), box, to);
  } else {
    take_means(elements, source, covers, finer.type(), box, to);
  }
  return {};
}

Status write_level(const ElementSource& finer, Downsampling how, const Array& level, StoreOutput& output,
                   LevelFile* kept, const LevelOptions& options) {
  const ArrayMetadata& metadata = level.metadata();
  const Shape tile = metadata.leaf_shape();
  const std::size_t element_bytes = metadata.type.bytes();
  const ChunkBoxes boxes(metadata.shape, metadata.chunk_shape, {}, {}, element_bytes, options.memory_bytes);
  return catch_out_of_memory([&]() -> Status {
    BulkVector<std::byte> elements(boxes.most_elements() * element_bytes);
    for (std::uint64_t i = 0; i < boxes.count(); ++i) {
      CGL_TRY(options.cancel.check());
      const Region box = boxes.at(i);
      const ChunkBoxes tiles(box.shape, tile, {}, {}, element_bytes, 0);
      FirstFailure failure;
      const auto make_tiles = [&](std::size_t begin, std::size_t end) {
        for (std::size_t t = begin; t < end; ++t) {
          const Region in_box = tiles.at(t);
          Region place = in_box;
          for (std::size_t d = 0; d < place.origin.size(); ++d) place.origin[d] += box.origin[d];
          const auto make = [&]() -> Status {
            CGL_TRY(options.cancel.check());
            BulkVector<std::byte> made(elements_of(place.shape) * element_bytes);
            CGL_TRY(downsample(finer, metadata.shape, how, place, made));
            if (kept != nullptr) CGL_TRY(kept->write_tile(place.origin, made));
            const Shape start(place.shape.size());
            copy_box(place.shape, element_bytes, made.data(), place.shape, start, elements.data(), box.shape,
                     in_box.origin);
            return {};
          };
          failure.note(t, catch_out_of_memory(make));
        }
      };
      if (options.pool != nullptr) {
        options.pool->parallel_for(tiles.count(), 1, make_tiles);
      } else {
        make_tiles(0, tiles.count());
      }
      CGL_TRY(failure.take());
      const auto written =
          write_region(level, output, box, std::span(elements).first(elements_of(box.shape) * element_bytes),
                       {.pool = options.pool, .cancel = options.cancel});
      if (!written) return tl::make_unexpected(written.error());
      if (options.progress != nullptr) options.progress->advance(elements_of(box.shape));
    }
    return {};
  });
}

}  // namespace cingulum::zarr
