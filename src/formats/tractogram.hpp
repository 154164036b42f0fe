// Streamlines in files, the same for TRK, TCK and TRX: readers that give batches from a memory map, writers that take
// batches in a stream and hold one at most. Positions in memory are world coordinates, RAS+ in millimetres. The formats
// themselves are in trk.*, tck.*, trx.*; this is what the rest of Cingulum calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/element_type.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

enum class TractogramFormat { trk, tck, trx, trx_folder };

// A named array with `columns` numbers per point, per streamline or per group.
struct DataField {
  std::string name;
  ElementType type = {};
  std::int64_t columns = 1;

  friend bool operator==(const DataField&, const DataField&) = default;
};

struct TractogramGroup {
  std::string name;
  std::vector<std::uint32_t> streamlines;
  // Data of the group itself (TRX dpg).
  std::vector<DataField> fields;
  std::vector<std::vector<std::byte>> data;  // one per field
};

// What a file says of itself, or what a writer is asked to write.
struct TractogramLayout {
  TractogramFormat format = TractogramFormat::trx;
  std::optional<ImageGeometry> reference;  // TRK and TRX need one, TCK has none
  ElementType position_type = {};          // float16, float32, float64; TRK and TCK: see their headers
  bool deflated = false;                   // TRX archives: the arrays are compressed
  ThreadPool* deflating_pool = nullptr;    // shares the compressing; the bytes do not depend on it
  std::vector<DataField> point_fields;
  std::vector<DataField> streamline_fields;
  std::int64_t streamline_count = -1;  // -1: not known
  std::int64_t point_count = -1;
  std::vector<std::pair<std::string, std::string>> notes;  // TCK key: value lines; others ignore them
  std::vector<std::string> warnings;
};

// Consecutive streamlines. Positions are kept in the type of the file so that nothing is lost on the way through.
struct TractogramBatch {
  std::vector<std::uint64_t> offsets = {0};             // streamlines + 1, in points, starting with 0
  std::vector<float> positions;                         // x y z of every point; empty where positions64 is used
  std::vector<double> positions64;                      // float64 files
  std::vector<std::vector<std::byte>> point_data;       // one per field, columns * size bytes per point
  std::vector<std::vector<std::byte>> streamline_data;  // one per field
  // Instead of positions, for writers that say so (TractogramWriter::makes_positions): fills `out` with those of the
  // streamlines from `first` to before `last`, as float. Called by the threads that write, for the place where they are
  // to be, so that a position is moved once. any thread
  using MakePositions = std::function<void(std::size_t first, std::size_t last, std::span<float> out)>;
  MakePositions make_positions = {};

  [[nodiscard]] std::size_t streamline_count() const { return offsets.size() - 1; }
  [[nodiscard]] std::size_t point_count() const { return static_cast<std::size_t>(offsets.back()); }
  // x y z of the points of one streamline, as float.
  [[nodiscard]] std::span<const float> streamline(std::size_t index) const {
    return std::span(positions).subspan(static_cast<std::size_t>(offsets[index]) * 3,
                                        static_cast<std::size_t>(offsets[index + 1] - offsets[index]) * 3);
  }
  void clear();
  // The streamlines of `next` behind those that are here; both have the same fields.
  void append(const TractogramBatch& next);
};

class TractogramReader {
 public:
  virtual ~TractogramReader() = default;
  // By content, not by name. Checks sizes, offsets and counts before anything is believed.
  [[nodiscard]] static Result<std::unique_ptr<TractogramReader>> open(const std::filesystem::path& path);

  [[nodiscard]] virtual const TractogramLayout& layout() const = 0;
  // Fills `batch` with the next streamlines, about `max_points` points of them (at least one streamline); false at the
  // end. With `as_float` positions are always float32.
  [[nodiscard]] virtual Result<bool> next(TractogramBatch& batch, std::size_t max_points, bool as_float) = 0;
  // TRX; empty for the others.
  [[nodiscard]] virtual Result<std::vector<TractogramGroup>> groups() = 0;
  // Reads everything that carries a checksum (zip entries) and fails on the first that is wrong.
  [[nodiscard]] virtual Status verify() = 0;
};

constexpr std::size_t default_batch_points = std::size_t{1} << 18U;

// The whole file in memory as float32: small files, tests, truth of phantoms.
struct Tractogram {
  TractogramLayout layout;
  TractogramBatch streamlines;
  std::vector<TractogramGroup> groups;
};
[[nodiscard]] Result<Tractogram> read_tractogram(const std::filesystem::path& path);
// Everything that a reader still gives, in batches of about `max_points` points, joined; `as_float` as for next().
[[nodiscard]] Result<Tractogram> read_tractogram(TractogramReader& reader, std::size_t max_points, bool as_float);

class TractogramWriter {
 public:
  virtual ~TractogramWriter() = default;
  // layout.format says which; `format_of_name` gives it from an extension. Counts in the layout are ignored. Without
  // options.companion the file has no sidecar, and one that an earlier run left is removed.
  [[nodiscard]] static Result<std::unique_ptr<TractogramWriter>> create(const std::filesystem::path& path,
                                                                        const TractogramLayout& layout,
                                                                        const WriteOptions& options);
  // Fields in the order of the layout. Positions as float or double, whichever the batch has.
  [[nodiscard]] virtual Status append(const TractogramBatch& batch) = 0;
  // Whether a batch may have make_positions instead of positions.
  [[nodiscard]] virtual bool makes_positions() const { return false; }
  // TRX only; may come before, between or after the batches.
  [[nodiscard]] virtual Status add_group(TractogramGroup group) = 0;
  // Completes the file and gives it its name. Without it nothing is left.
  [[nodiscard]] virtual Status commit() = 0;
};

// ".trk", ".tck", ".trx"; a name without one of them is a TRX folder when it ends in '/' or ".trx.d".
[[nodiscard]] Result<TractogramFormat> format_of_name(const std::filesystem::path& path);
[[nodiscard]] std::string_view tractogram_format_name(TractogramFormat format);

}  // namespace cingulum
