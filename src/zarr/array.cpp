#include "zarr/array.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/first_failure.hpp"
#include "formats/corrupt.hpp"
#include "formats/sidecar.hpp"
#include "zarr/region_plan.hpp"
#include "zarr/scratch_pool.hpp"
#include "zarr/shard_index.hpp"

namespace cingulum::zarr {
namespace {

constexpr std::uint64_t largest_metadata_bytes = std::uint64_t{64} << 20U;

std::string joined_key(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}/{}", path, name);
}

Result<Json> read_json(const Store& store, const std::string& key) {
  CGL_TRY_ASSIGN(const auto text, store.read_text(key, largest_metadata_bytes));
  if (!text) return Json();
  return add_file_context(parse_json(*text), "reading", (store.path() / key).native());
}

Result<ArrayMetadata> read_metadata(const Store& store, const std::string& path) {
  const std::string v3_key = joined_key(path, "zarr.json");
  CGL_TRY_ASSIGN(const Json v3, read_json(store, v3_key));
  if (!v3.is_null()) return add_file_context(parse_v3_array(v3), "reading", (store.path() / v3_key).native());
  const std::string v2_key = joined_key(path, ".zarray");
  CGL_TRY_ASSIGN(const Json v2, read_json(store, v2_key));
  if (v2.is_null()) {
    const std::string where = (store.path() / path).native();
    return fail_file(where, ErrorKind::not_found, "{}: there is no array (neither zarr.json nor .zarray)", where);
  }
  CGL_TRY_ASSIGN(const Json attributes, read_json(store, joined_key(path, ".zattrs")));
  return add_file_context(parse_v2_array(v2, attributes), "reading", (store.path() / v2_key).native());
}

// One leaf to its place in host memory.
Status read_leaf(const RegionPlan& plan, const LeafWindow& window, std::size_t i, std::byte* to,
                 const ReadOptions& options, CodecScratch& scratch) {
  CGL_TRY(options.cancel.check());
  const ArrayMetadata& metadata = plan.array().metadata();
  if (window.leaf(i).object == nullptr) {
    if (options.complete) {
      return tl::make_unexpected(
          plan.located(window, i, Error(ErrorKind::corrupt, "it is not stored, and a complete array was asked for")));
    }
    const std::span<const std::byte> element = std::span(metadata.fill).first(metadata.type.bytes());
    plan.for_each_move(window.origin(i), [&](const BoxMove& move) { fill_box(move, element, to); });
    return {};
  }
  CGL_TRY_ASSIGN(const auto chunk, plan.load(window, i, scratch));
  plan.for_each_move(window.origin(i), [&](const BoxMove& move) { scatter(move, chunk.data(), to); });
  return {};
}

}  // namespace

Result<Array> Array::open(std::shared_ptr<const Store> store, std::string path) {
  return catch_out_of_memory([&]() -> Result<Array> {
    CGL_TRY_ASSIGN(ArrayMetadata metadata, read_metadata(*store, path));
    return describe(std::move(store), std::move(path), std::move(metadata));
  });
}

Array Array::describe(std::shared_ptr<const Store> store, std::string path, ArrayMetadata metadata) {
  Array array;
  array.store_ = std::move(store);
  array.path_ = std::move(path);
  array.metadata_ = std::make_shared<const ArrayMetadata>(std::move(metadata));
  array.indices_ = std::make_shared<ShardIndexCache>();
  return array;
}

std::string Array::name() const {
  if (store_ == nullptr) return path_.empty() ? std::string("the array") : path_;
  return (path_.empty() ? store_->path() : store_->path() / path_).native();
}

std::string Array::key_of(std::span<const std::uint64_t> chunk) const {
  return joined_key(path_, metadata_->chunk_key(chunk));
}

Region whole(const ArrayMetadata& metadata) {
  return {Shape(metadata.rank(), 0), metadata.shape};
}

Status check_region(const Array& array, const Region& region) {
  const Shape& shape = array.metadata().shape;
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorKind::invalid_argument, "region of {} at {}: {} ({} has {})",
                fmt::format("{}", fmt::join(region.shape, " x ")), fmt::format("{}", fmt::join(region.origin, ", ")),
                why, array.name(), fmt::format("{}", fmt::join(shape, " x ")));
  };
  if (region.origin.size() != shape.size() || region.shape.size() != shape.size()) {
    return refuse("it has another number of dimensions than the array");
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (region.shape[d] > shape[d] || region.origin[d] > shape[d] - region.shape[d]) {
      return refuse("it is not inside the array");
    }
  }
  return {};
}

Strides row_major_strides(std::span<const std::uint64_t> shape, std::size_t element_bytes) {
  Strides strides(shape.size());
  auto stride = static_cast<std::int64_t>(element_bytes);
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= static_cast<std::int64_t>(std::max<std::uint64_t>(shape[d], 1));
  }
  return strides;
}

void ReadReport::add(const ReadReport& other) {
  chunks += other.chunks;
  filled_chunks += other.filled_chunks;
  stored_bytes += other.stored_bytes;
  retried_chunks += other.retried_chunks;
}

Result<ReadReport> read_region(const Array& array, const Region& region, std::span<std::byte> to,
                               const ReadOptions& options) {
  return read_region(array, region, to, {}, options);
}

Result<ReadReport> read_region(const Array& array, const Region& region, std::span<std::byte> to,
                               std::span<const std::int64_t> strides, const ReadOptions& options) {
  return catch_out_of_memory([&]() -> Result<ReadReport> {
    CGL_TRY_ASSIGN(RegionPlan plan, RegionPlan::create(array, region, strides));
    if (plan.place_bytes() > to.size()) {
      return fail(ErrorKind::invalid_argument, "a region of {} bytes does not fit into {}", plan.place_bytes(),
                  to.size());
    }
    ReadReport report;
    ScratchPool scratches;
    LeafWindow window;
    while (true) {
      CGL_TRY_ASSIGN(const bool more, plan.next_window(window, options));
      if (!more) return report;
      FirstFailure failure;
      const auto read = [&](std::size_t begin, std::size_t end) {
        failure.note(begin, catch_out_of_memory([&]() -> Status {
                       const ScratchPool::Loan scratch = scratches.take();
                       for (std::size_t i = begin; i < end; ++i) {
                         CGL_TRY(read_leaf(plan, window, i, to.data(), options, *scratch));
                       }
                       return {};
                     }));
      };
      if (options.pool != nullptr && window.size() > 1) {
        options.pool->parallel_for(window.size(), 0, read);
      } else {
        read(0, window.size());
      }
      CGL_TRY(failure.take());
      for (std::size_t i = 0; i < window.size(); ++i) {
        ++report.chunks;
        report.filled_chunks += window.leaf(i).object == nullptr ? 1U : 0U;
        report.stored_bytes += window.leaf(i).bytes;
      }
    }
  });
}

Status write_array_metadata(const std::string& path, const ArrayMetadata& metadata, StoreOutput& output) {
  if (metadata.format == 3) return output.put_text(joined_key(path, "zarr.json"), metadata.document + "\n");
  CGL_TRY(output.put_text(joined_key(path, ".zarray"), metadata.document + "\n"));
  if (metadata.attributes == "{}") return {};
  return output.put_text(joined_key(path, ".zattrs"), metadata.attributes + "\n");
}

}  // namespace cingulum::zarr
