// A copy of an array, of an OME-Zarr image or of any hierarchy, laid out anew: other chunks, shards and codecs, the
// other version of Zarr and of OME-Zarr, a part of the image, a pyramid of levels. First a plan, which reads metadata
// alone and refuses what cannot be done; then the work, which streams in bounded memory and gives the same bytes on any
// number of threads. Called by `cingulum zarr copy`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_layer.hpp"
#include "base/result.hpp"
#include "base/run_context.hpp"
#include "base/thread_pool.hpp"
#include "zarr/array.hpp"
#include "zarr/new_array.hpp"
#include "zarr/ome_zarr.hpp"
#include "zarr/pyramid.hpp"

namespace cingulum::zarr {

// How arrays are stored in the copy.
struct CopyLayout {
  int format = 3;
  Shape chunks = {};  // empty: chosen
  Shape shards = {};  // empty: chosen
  bool sharded = true;
  std::optional<CodecChoice> codec = {};
};

struct CropRange {
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end = {};  // absent: to the end
};

struct PyramidChoice {
  std::optional<std::size_t> levels = {};  // absent: until a level is a chunk
};

struct CopyRequest {
  std::string path = {};  // of the node in its store; "" is the root
  CopyLayout layout = {};
  std::vector<CropRange> crop = {};  // of each dimension of the array, or of the finest level; empty: all
  std::optional<PyramidChoice> pyramid = {};
  std::optional<Downsampling> downsampling = {};  // absent: nearest for labels, else mean
  bool image = false;                             // a bare array becomes an image, as it does with a pyramid
  bool window = false;                            // omero's window by percentiles, instead of what there is
  // Scale and unit of an array that becomes an image; empty: 1 and no unit.
  std::vector<double> scale = {};
  std::string unit = {};
};

struct PlannedGroup {
  std::string path;
  std::string attributes;  // JSON text
};

struct PlannedArray {
  std::string path;
  ArrayMetadata metadata;
  std::optional<Array> source = {};  // a region of it ...
  Region region = {};
  std::optional<std::size_t> finer = {};  // ... or the array of the plan that it is a coarser level of
  Downsampling downsampling = Downsampling::mean;
};

struct CopyPlan {
  std::string root;  // the node of the source that becomes the root of the copy
  int format = 3;
  std::vector<PlannedGroup> groups;
  std::vector<PlannedArray> arrays;
  std::vector<std::string> files;     // keys that are neither groups nor arrays: copied as they are
  std::optional<std::size_t> window;  // the array whose values give the window of the first group
  std::optional<std::size_t> channel_axis;
  std::vector<std::string> notes;

  // Bytes of the output, where codecs do not compress, and of temporary files; 0 where they cannot be known.
  [[nodiscard]] std::uint64_t needed_bytes() const;
  // Elements that are read or made, for progress.
  [[nodiscard]] std::uint64_t work() const;
};

[[nodiscard]] Result<CopyPlan> plan_copy(const std::shared_ptr<const Store>& store, const CopyRequest& request,
                                         const CancelToken& cancel = {});

struct CopyOptions {
  ThreadPool* pool = nullptr;
  RunContext run = {};
  bool complete = false;                                   // a chunk of the source that is not stored is a failure
  std::uint64_t memory_bytes = std::uint64_t{256} << 20U;  // of elements in memory
  FileLayer* layer = nullptr;                              // of temporary files; default: the system's
};

struct CopyReport {
  ReadReport read;
  WriteReport written;  // of arrays that are copied; levels that are made count in `made_levels`
  std::size_t made_levels = 0;
};

// `destination` is the name of the output, beside which temporary files are made. The output is not committed.
[[nodiscard]] Result<CopyReport> run_copy(const Store& store, const CopyPlan& plan, StoreOutput& output,
                                          const std::filesystem::path& destination, const CopyOptions& options);

// Bytes that the chunks of a new array take; 0 where its codecs compress.
[[nodiscard]] std::uint64_t known_stored_bytes(const ArrayMetadata& metadata);

}  // namespace cingulum::zarr
