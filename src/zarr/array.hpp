// An array of a store: opened, read and written by regions in host memory. Regions that end in device memory are
// zarr/direct's, which uses the same plans (region_plan.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "zarr/array_metadata.hpp"
#include "zarr/store.hpp"

namespace cingulum::zarr {

class ShardIndexCache;

// any thread
class Array {
 public:
  Array() = default;  // of nothing, until it is assigned one
  // `path` is that of the array in its store, "" where the store is the array.
  [[nodiscard]] static Result<Array> open(std::shared_ptr<const Store> store, std::string path);
  // An array that is about to be written: nothing is read of the store for its metadata.
  [[nodiscard]] static Array describe(std::shared_ptr<const Store> store, std::string path, ArrayMetadata metadata);

  [[nodiscard]] const ArrayMetadata& metadata() const { return *metadata_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Store& store() const { return *store_; }
  [[nodiscard]] bool has_store() const { return store_ != nullptr; }
  // For messages: "scan.ome.zarr/0".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string key_of(std::span<const std::uint64_t> chunk) const;
  [[nodiscard]] ShardIndexCache& shard_indices() const { return *indices_; }

 private:
  std::shared_ptr<const Store> store_;
  std::string path_;
  std::shared_ptr<const ArrayMetadata> metadata_;
  std::shared_ptr<ShardIndexCache> indices_;
};

// A box of an array. Empty extents are legal: nothing is read.
struct Region {
  Shape origin;
  Shape shape;
};
[[nodiscard]] Region whole(const ArrayMetadata& metadata);
// Inside the array, of its rank.
[[nodiscard]] Status check_region(const Array& array, const Region& region);

// Where a region's elements are in memory: the first one at the start of the memory, the others by strides in bytes
// (none: one behind the other, the last dimension fastest).
// None of them is negative.
using Strides = std::vector<std::int64_t>;
[[nodiscard]] Strides row_major_strides(std::span<const std::uint64_t> shape, std::size_t element_bytes);

struct ReadOptions {
  ThreadPool* pool = nullptr;  // null: the calling thread alone
  CancelToken cancel = {};
  bool complete = false;  // a chunk that is not stored is a failure
};

struct ReadReport {
  std::uint64_t chunks = 0;          // leaf chunks that meet the region
  std::uint64_t filled_chunks = 0;   // of these not stored, and filled
  std::uint64_t stored_bytes = 0;    // encoded bytes that were read
  std::uint64_t retried_chunks = 0;  // read again by the host after an engine failed (zarr/direct)
  void add(const ReadReport& other);
};

// `to` holds region.shape elements in row-major order.
[[nodiscard]] Result<ReadReport> read_region(const Array& array, const Region& region, std::span<std::byte> to,
                                             const ReadOptions& options = {});
// The same with strides; `to` covers all elements.
[[nodiscard]] Result<ReadReport> read_region(const Array& array, const Region& region, std::span<std::byte> to,
                                             std::span<const std::int64_t> strides, const ReadOptions& options = {});

struct ArrayWriteOptions {
  ThreadPool* pool = nullptr;
  CancelToken cancel = {};
};

struct WriteReport {
  std::uint64_t chunks = 0;        // leaf chunks that were written
  std::uint64_t stored_bytes = 0;  // encoded bytes
};

// Writes a region of an array whose keys go to `output`. Chunks that the region covers in part are completed by what
// the array's store has under their keys (the fill value, where there is nothing). Keys of one call are written once.
[[nodiscard]] Result<WriteReport> write_region(const Array& array, StoreOutput& output, const Region& region,
                                               std::span<const std::byte> from, const ArrayWriteOptions& options = {});
[[nodiscard]] Result<WriteReport> write_region(const Array& array, StoreOutput& output, const Region& region,
                                               std::span<const std::byte> from, std::span<const std::int64_t> strides,
                                               const ArrayWriteOptions& options = {});

// The metadata of a new array.
[[nodiscard]] Status write_array_metadata(const std::string& path, const ArrayMetadata& metadata, StoreOutput& output);

}  // namespace cingulum::zarr
