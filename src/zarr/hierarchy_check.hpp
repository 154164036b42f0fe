// Whether a Zarr hierarchy is still what was written: every chunk read and decoded, the checksums of an archive, the
// hash in a sidecar. One damaged chunk does not hide the next. Called by `cingulum zarr verify`, `verify` and, to count
// without decoding, by `info`. It repairs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "zarr/array.hpp"

namespace cingulum::zarr {

struct ArrayCheckOptions {
  ThreadPool* pool = nullptr;
  CancelToken cancel = {};
  bool decode = true;              // false: only what is there is counted, by indices and sizes
  std::size_t most_faults = 1000;  // that are listed; all are counted
  Progress* progress = nullptr;    // advanced by chunks with keys
};

struct ArrayCheck {
  std::uint64_t chunks = 0;        // that hold elements: inner chunks of shards
  std::uint64_t missing = 0;       // of these, not stored: they are read as the fill value
  std::uint64_t stored_bytes = 0;  // of the others, encoded
  std::uint64_t fault_count = 0;
  std::vector<std::string> faults;  // one line each, in the order of the array
};

// Fails where the array as a whole cannot be looked at; damaged chunks are faults.
[[nodiscard]] Result<ArrayCheck> check_array(const Array& array, const ArrayCheckOptions& options);

// "crc32c", "zstd checksum", ...: what decoding a chunk verifies; empty: nothing.
[[nodiscard]] std::vector<std::string> checksums_of(const ArrayMetadata& metadata);

struct HierarchyCheck {
  struct NamedCheck {
    std::string path;
    bool has_checksum = false;
    ArrayCheck check;
  };
  std::vector<NamedCheck> arrays;
  std::vector<std::string> checksums;  // what was compared: "sidecar XXH3-128", "zip CRC-32", "crc32c", ...
  std::uint64_t missing = 0;
  std::uint64_t fault_count = 0;
  std::vector<std::string> faults;  // of arrays and of the whole
};

// All arrays of a hierarchy, and what stands around it. Fails where it cannot be opened at all.
[[nodiscard]] Result<HierarchyCheck> check_hierarchy(const std::filesystem::path& path,
                                                     const ArrayCheckOptions& options);

}  // namespace cingulum::zarr
