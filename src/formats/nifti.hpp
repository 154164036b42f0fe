// NIfTI-1 and NIfTI-2 images, .nii and .nii.gz: reading any numeric type in either byte order as float or double with
// the scaling applied, volume by volume in bounded memory, and writing through the one atomic writer. Headers that are
// odd but readable give warnings, never a guess without one. It knows nothing of what the numbers mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/cancel.hpp"
#include "base/element_type.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/deflate_pieces.hpp"
#include "formats/image_geometry.hpp"

namespace cingulum {

class ByteStream;

enum class AffineSource { sform, qform, pixdim };

struct NiftiHeader {
  int version = 1;  // 1 or 2
  bool big_endian = false;
  bool compressed = false;          // gzip around it
  ElementType type = {};            // complex64 .. complex256, float128 are named in `datatype` and refused by read
  int datatype = 16;                // the header's own code
  std::vector<std::int64_t> shape;  // 1 to 7 entries, x fastest
  std::vector<double> pixdim;       // 8, as stored
  double slope = 1;                 // 1 and 0 where the header has none
  double intercept = 0;
  AffineSource affine_source = AffineSource::sform;
  int sform_code = 0;
  int qform_code = 0;
  Affine sform = {};
  Affine qform = {};
  std::uint64_t data_offset = 352;
  int intent_code = 0;
  std::string intent_name;
  std::string description;
  std::string spatial_unit;  // "mm", "m", "um", "unknown"
  std::string time_unit;
  std::vector<std::string> warnings;  // what was odd, in words
  ImageGeometry geometry;             // the first three axes, in mm; missing axes count 1

  [[nodiscard]] std::int64_t volume_count() const;  // the product of the axes after the third
};

// Streams the volumes of one file from first to last. Memory: one block of the file, whatever its size.
class NiftiReader {
 public:
  // `cancel` is polled while volumes are read.
  [[nodiscard]] static Result<NiftiReader> open(const std::filesystem::path& path, CancelToken cancel = {});
  // The same for bytes in memory, which belong to the caller; `name` stands in messages.
  [[nodiscard]] static Result<NiftiReader> open_memory(std::span<const std::byte> bytes, std::string name,
                                                       CancelToken cancel = {});
  NiftiReader(NiftiReader&&) noexcept;
  NiftiReader& operator=(NiftiReader&&) noexcept;
  ~NiftiReader();

  // More warnings may join the header's at the end of the data.
  [[nodiscard]] const NiftiHeader& header() const noexcept;
  // The next volume (voxel_count values), scaled. `values` has exactly that size. After the last volume the rest of the
  // stream is read so that gzip's checksum is verified.
  [[nodiscard]] Status next_volume(std::span<float> values);
  [[nodiscard]] Status next_volume(std::span<double> values);
  [[nodiscard]] std::int64_t volumes_read() const noexcept;
  // Reads what is left without converting it: whether the file is complete, and gzip's checksum.
  [[nodiscard]] Status verify();

 private:
  struct State;
  explicit NiftiReader(std::unique_ptr<State> state) noexcept;
  [[nodiscard]] static Result<NiftiReader> open_stream(std::unique_ptr<ByteStream> stream, bool compressed,
                                                       std::uint64_t file_bytes, std::string name, CancelToken cancel);
  std::unique_ptr<State> state_;
};

// A whole image as float32, volume after volume, x fastest: masks, maps, SH images.
struct Image {
  ImageGeometry geometry;
  std::int64_t volumes = 1;
  std::vector<float> values;

  [[nodiscard]] std::span<const float> volume(std::int64_t index) const {
    const auto count = static_cast<std::size_t>(geometry.voxel_count());
    return std::span(values).subspan(static_cast<std::size_t>(index) * count, count);
  }
};

[[nodiscard]] Result<Image> read_image(const std::filesystem::path& path, CancelToken cancel = {});
[[nodiscard]] Result<Image> read_image(NiftiReader& reader);  // from its next volume on
// One volume (a fourth axis of length 1 is accepted); true where the value is above zero.
[[nodiscard]] Result<std::vector<std::uint8_t>> read_mask(const std::filesystem::path& path, ImageGeometry& geometry,
                                                          CancelToken cancel = {});

struct NiftiWriteOptions {
  WriteOptions file = {};
  ElementType type = {};  // of the file; float32 unless said. Values are rounded to nearest even and clamped
  double slope = 1;       // stored = (value - intercept) / slope
  double intercept = 0;
  int intent_code = 0;
  std::string intent_name = {};
  std::string description = {};  // at most 79 bytes
  int version = 0;               // 0: NIfTI-1 unless an axis is longer than 32767
  int compression_level = 1;     // of .nii.gz
  DeflateSearch compression_search = DeflateSearch::matches;
  ThreadPool* pool = nullptr;  // compresses on it; the bytes do not depend on the number of threads
};

// Streams volumes into a file; compressed when the name ends in .gz. sform and qform are both written (code 1; the
// qform only where the affine is a rotation with scaling). The same input gives the same bytes. Without
// options.file.companion the file has no sidecar, and one that an earlier run left is removed.
class NiftiWriter {
 public:
  [[nodiscard]] static Result<NiftiWriter> create(const std::filesystem::path& path, const ImageGeometry& geometry,
                                                  std::vector<std::int64_t> further_axes,
                                                  const NiftiWriteOptions& options);
  NiftiWriter(NiftiWriter&&) noexcept;
  NiftiWriter& operator=(NiftiWriter&&) noexcept;
  ~NiftiWriter();

  [[nodiscard]] Status append(std::span<const float> values);  // any number of values at a time
  [[nodiscard]] Status append(std::span<const double> values);
  // Fails when not exactly all values came.
  [[nodiscard]] Status commit();

 private:
  struct State;
  explicit NiftiWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// `values` holds `volumes` volumes; 3-D when volumes is 1.
[[nodiscard]] Status write_image(const std::filesystem::path& path, const ImageGeometry& geometry, std::int64_t volumes,
                                 std::span<const float> values, const NiftiWriteOptions& options = {});

}  // namespace cingulum
