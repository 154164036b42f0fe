#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "formats/element_number.hpp"
#include "formats/guarded_writer.hpp"
#include "formats/tractogram_batch.hpp"
#include "formats/trk.hpp"
#include "formats/trk_header.hpp"

namespace cingulum {
namespace {

using Bytes = std::span<const std::byte>;
using numerics::Vec3d;

Status check_trk_count(std::uint64_t streamlines) {
  if (streamlines <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) return {};
  return fail(ErrorKind::invalid_argument, "TRK counts to 2147483647 streamlines; use TRX");
}

// Puts the count into the header, and gives the file its name.
Status commit_trk(AtomicFile& file, std::uint64_t streamlines) {
  const auto count = static_cast<std::int32_t>(streamlines);
  CGL_TRY(file.write_at(trk_at_count, std::as_bytes(std::span(&count, 1))));
  return file.commit();
}

class TrkWriter final : public GuardedWriter {
 public:
  TrkWriter(std::string shown, TractogramLayout layout, AtomicFile file)
      : GuardedWriter(std::move(shown), std::move(layout)), file_(std::move(file)) {}

  [[nodiscard]] Status begin() {
    CGL_TRY_ASSIGN(const NewTrkHeader header, make_trk_header(layout_));
    to_trackvis_ = header.to_trackvis;
    return file_.append(header.bytes);
  }

 private:
  Status append_batch(const TractogramBatch& batch) override;
  void discard() noexcept override { file_.discard(); }
  Status write_end() override { return commit_trk(file_, streamlines_); }
  AtomicFile file_;
  Affine to_trackvis_;
  StreamlineParts parts_;
  std::uint64_t streamlines_ = 0;
};

Status TrkWriter::append_batch(const TractogramBatch& batch) {
  CGL_TRY(check_batch(layout_, batch));
  CGL_TRY(check_trk_count(streamlines_ + batch.streamline_count()));
  for (std::size_t i = 0; i < batch.streamline_count(); ++i) {
    const std::uint64_t points = batch.offsets[i + 1] - batch.offsets[i];
    if (points > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
      return fail(ErrorKind::invalid_argument, "streamline {} has {} points, more than TRK can hold", streamlines_ + i,
                  points);
    }
  }
  const bool doubles = !batch.positions64.empty();
  const Affine to_trackvis = to_trackvis_;
  std::size_t point_columns = 3;
  for (const DataField& field : layout_.point_fields) point_columns += static_cast<std::size_t>(field.columns);
  std::size_t streamline_columns = 0;
  for (const DataField& field : layout_.streamline_fields)
    streamline_columns += static_cast<std::size_t>(field.columns);
  const auto put_fields = [](const std::vector<DataField>& fields, const std::vector<std::vector<std::byte>>& data,
                             std::size_t row, std::byte* out) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto columns = static_cast<std::size_t>(fields[f].columns);
      const std::size_t size = fields[f].type.bytes();
      const std::byte* const at = data[f].data() + row * columns * size;
      for (std::size_t c = 0; c < columns; ++c, out += sizeof(float)) {
        const float value = float_of_element(at + c * size, fields[f].type);
        std::memcpy(out, &value, sizeof(value));
      }
    }
  };
  // `floats` has the points from number `base` on, unless they are doubles.
  const auto encode = [&](std::size_t i, std::span<const float> floats, std::size_t base, std::byte* out) {
    const auto first = static_cast<std::size_t>(batch.offsets[i]);
    const auto count = static_cast<std::size_t>(batch.offsets[i + 1]) - first;
    const auto stored_count = static_cast<std::int32_t>(count);
    std::memcpy(out, &stored_count, sizeof(stored_count));
    out += sizeof(stored_count);
    for (std::size_t p = first; p < first + count; ++p) {
      const Vec3d world =
          doubles ? Vec3d{batch.positions64[p * 3], batch.positions64[p * 3 + 1], batch.positions64[p * 3 + 2]}
                  : Vec3d{static_cast<double>(floats[(p - base) * 3]), static_cast<double>(floats[(p - base) * 3 + 1]),
                          static_cast<double>(floats[(p - base) * 3 + 2])};
      std::array<float, 3> position;
      for (std::size_t row = 0; row < 3; ++row) {
        const double* const m = to_trackvis.rows.data() + row * 4;
        // As Affine::apply.
        position[row] = static_cast<float>(((m[0] * world.x + m[1] * world.y) + m[2] * world.z) + m[3]);
      }
      std::memcpy(out, position.data(), sizeof(position));
      put_fields(layout_.point_fields, batch.point_data, p, out + sizeof(position));
      out += point_columns * sizeof(float);
    }
    put_fields(layout_.streamline_fields, batch.streamline_data, i, out);
  };
  const auto bytes_before = [&](std::size_t i) {
    return i * (sizeof(std::int32_t) + streamline_columns * sizeof(float)) +
           batch.offsets[i] * point_columns * sizeof(float);
  };
  parts_.cut(batch.streamline_count(), bytes_before);
  CGL_TRY(file_.append_parts(parts_.offsets, [&](std::size_t part, std::span<std::byte> place) {
    const std::size_t begin = parts_.streamlines[part], end = parts_.streamlines[part + 1];
    std::vector<float> made;
    if (batch.make_positions) {
      made.resize(3 * static_cast<std::size_t>(batch.offsets[end] - batch.offsets[begin]));
      batch.make_positions(begin, end, made);
    }
    for (std::size_t i = begin; i < end; ++i) {
      std::byte* const out = place.data() + (bytes_before(i) - parts_.offsets[part]);
      if (batch.make_positions) {
        encode(i, made, static_cast<std::size_t>(batch.offsets[begin]), out);
      } else {
        encode(i, batch.positions, 0, out);
      }
    }
  }));
  streamlines_ += batch.streamline_count();
  return {};
}

}  // namespace

Result<TrkJoin> TrkJoin::create(const std::filesystem::path& out, Bytes first, const WriteOptions& options) {
  CGL_TRY_ASSIGN(std::vector<std::byte> header, trk_header_without_count(first));
  CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(out, options));
  CGL_TRY(file.append(header));
  return TrkJoin(std::move(file), std::move(header));
}

Result<std::uint64_t> TrkJoin::add(Bytes file, std::uint64_t streamlines) {
  CGL_TRY_ASSIGN(const std::vector<std::byte> header, trk_header_without_count(file));
  if (header != header_) return corrupt("its header is not that of the first part");
  const auto scalar_count = load<std::int16_t>(header, trk_at_scalar_count);
  const auto property_count = load<std::int16_t>(header, trk_at_property_count);
  if (scalar_count < 0 || property_count < 0) return corrupt("header: a negative number of fields");
  const auto scalars = static_cast<std::uint64_t>(scalar_count);
  const auto properties = static_cast<std::uint64_t>(property_count);
  std::size_t at = trk_header_bytes;
  std::uint64_t points = 0;
  for (std::uint64_t i = 0; i < streamlines; ++i) {
    const std::size_t left = file.size() - at;
    if (left < sizeof(std::int32_t)) return corrupt("{} streamlines are missing", streamlines - i);
    const auto count = load<std::int32_t>(file, at, false);
    if (count < 0) return corrupt("streamline {} has {} points", i, count);
    const std::uint64_t bytes =
        sizeof(std::int32_t) + sizeof(float) * (static_cast<std::uint64_t>(count) * (3 + scalars) + properties);
    if (bytes > left) return corrupt("streamline {} of {} points is cut off", i, count);
    at += static_cast<std::size_t>(bytes);
    points += static_cast<std::uint64_t>(count);
  }
  CGL_TRY(check_trk_count(streamlines_ + streamlines));
  const Bytes records = file.subspan(trk_header_bytes, at - trk_header_bytes);
  if (!records.empty()) {
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t offset = 0; offset < records.size(); offset += encoded_part_bytes) offsets.push_back(offset);
    offsets.push_back(records.size());
    CGL_TRY(file_.append_parts(offsets, [&](std::size_t part, std::span<std::byte> place) {
      std::copy_n(records.data() + offsets[part], place.size(), place.data());
    }));
  }
  streamlines_ += streamlines;
  return points;
}

Status TrkJoin::commit() {
  return commit_trk(file_, streamlines_);
}

Result<std::unique_ptr<TractogramWriter>> create_trk_writer(const std::filesystem::path& path,
                                                            const TractogramLayout& layout,
                                                            const WriteOptions& options) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramWriter>> {
    if (!layout.reference) {
      return fail_file(path.native(), ErrorKind::invalid_argument,
                       "writing {}: TRK needs the grid of a reference image, and none is known", path.native());
    }
    CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, options));
    auto writer = std::make_unique<TrkWriter>(path.native(), layout, std::move(file));
    CGL_TRY(name_output(writer->begin(), path.native()));
    return writer;
  });
}

}  // namespace cingulum
