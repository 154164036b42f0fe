#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "formats/tractogram_batch.hpp"
#include "formats/trk.hpp"
#include "formats/trk_header.hpp"
#include "formats/walked_reader.hpp"

namespace cingulum {
namespace {

class TrkReader final : public WalkedReader {
 public:
  explicit TrkReader(std::string shown) : WalkedReader(std::move(shown), TractogramFormat::trk, trk_header_bytes) {
    layout_.position_type = float32_type;
  }

  [[nodiscard]] Status open(FileBytes file) {
    file_ = std::move(file);
    CGL_TRY_ASSIGN(header_, read_trk_header(file_.bytes(), layout_));
    return {};
  }
  Result<std::uint64_t> count() override {
    if (header_.streamlines > 0) return header_.streamlines;
    return WalkedReader::count();
  }

 private:
  struct Record {
    std::size_t points = 0;
    std::size_t begin = 0;  // of the points
    std::size_t end = 0;
  };
  // The record of the streamline at byte `at`; none at the end.
  [[nodiscard]] Result<std::optional<Record>> find_record(std::size_t at, std::uint64_t streamline) const;
  [[nodiscard]] Result<std::optional<std::size_t>> place_after(std::size_t at,
                                                               std::uint64_t streamline) const override {
    CGL_TRY_ASSIGN(const std::optional<Record> record, find_record(at, streamline));
    return record ? std::optional(record->end) : std::nullopt;
  }
  [[nodiscard]] Result<bool> read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float) override;
  void copy_record(const Record& record, bool as_float, TractogramBatch& batch) const;

  FileBytes file_;
  TrkHeader header_;
};

Result<std::optional<TrkReader::Record>> TrkReader::find_record(std::size_t at, std::uint64_t streamline) const {
  const std::size_t size = file_.bytes().size();
  if (header_.streamlines > 0 ? streamline == header_.streamlines : at == size) return std::nullopt;
  if (size - at < 4) {
    return corrupt("streamline {} at byte {}: its number of points needs 4 bytes, the file has {} left: it is cut off",
                   streamline, at, size - at);
  }
  const auto points = load<std::int32_t>(file_.bytes(), at, header_.big_endian);
  if (points < 0) return corrupt("streamline {} at byte {} has {} points", streamline, at, points);
  const std::uint64_t needed =
      (static_cast<std::uint64_t>(points) * (3 + header_.scalar_columns) + header_.property_columns) * sizeof(float);
  if (needed > size - at - 4) {
    return corrupt(
        "streamline {} at byte {}: its {} points need {} bytes, the file has {} left: it is cut off or damaged",
        streamline, at, points, needed, size - at - 4);
  }
  return Record{
      .points = static_cast<std::size_t>(points), .begin = at + 4, .end = at + 4 + static_cast<std::size_t>(needed)};
}

void TrkReader::copy_record(const Record& record, bool as_float, TractogramBatch& batch) const {
  const std::size_t stride = (3 + header_.scalar_columns) * sizeof(float);
  const std::byte* const file = file_.bytes().data();
  const auto number_at = [&](std::size_t at) {
    float value;
    std::memcpy(&value, file + at, sizeof(value));
    return static_cast<double>(header_.big_endian ? swap_bytes(value) : value);
  };
  const Affine to_world = header_.to_world;
  const auto transform = [&](auto* out) {
    using Number = std::remove_pointer_t<decltype(out)>;
    for (std::size_t i = 0; i < record.points; ++i) {
      const std::size_t at = record.begin + i * stride;
      const double x = number_at(at);
      const double y = number_at(at + 4);
      const double z = number_at(at + 8);
      for (std::size_t row = 0; row < 3; ++row) {
        const double* const m = to_world.rows.data() + row * 4;
        // As Affine::apply.
        out[i * 3 + row] = static_cast<Number>(((m[0] * x + m[1] * y) + m[2] * z) + m[3]);
      }
    }
  };
  const std::size_t first = batch.point_count() * 3;
  if (as_float) {
    batch.positions.resize(first + record.points * 3);
    transform(batch.positions.data() + first);
  } else {
    batch.positions64.resize(first + record.points * 3);
    transform(batch.positions64.data() + first);
  }
  const auto copy = [&](std::vector<std::byte>& to, std::size_t from, std::size_t rows, std::size_t columns) {
    const std::size_t row_bytes = columns * sizeof(float);
    const std::size_t begin = to.size();
    to.resize(begin + rows * row_bytes);
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(to.data() + begin + i * row_bytes, file + from + i * stride, row_bytes);
    if (header_.big_endian) swap_in_place(std::span(to).subspan(begin), sizeof(float));
  };
  std::size_t column = record.begin + 3 * sizeof(float);
  for (std::size_t f = 0; f < layout_.point_fields.size(); ++f) {
    const auto columns = static_cast<std::size_t>(layout_.point_fields[f].columns);
    copy(batch.point_data[f], column, record.points, columns);
    column += columns * sizeof(float);
  }
  column = record.begin + record.points * stride;
  for (std::size_t f = 0; f < layout_.streamline_fields.size(); ++f) {
    const auto columns = static_cast<std::size_t>(layout_.streamline_fields[f].columns);
    copy(batch.streamline_data[f], column, 1, columns);
    column += columns * sizeof(float);
  }
}

Result<bool> TrkReader::read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float) {
  batch.clear();
  batch.point_data.resize(layout_.point_fields.size());
  batch.streamline_data.resize(layout_.streamline_fields.size());
  while (!ended_) {
    CGL_TRY_ASSIGN(const std::optional<Record> record, find_record(next_place_, streamlines_read_));
    if (!record) {
      ended_ = true;
      layout_.streamline_count = static_cast<std::int64_t>(streamlines_read_);
      const std::size_t rest = file_.bytes().size() - next_place_;
      if (rest > 0) {
        layout_.warnings.push_back(
            fmt::format("{} bytes after the {} streamlines of the header were left out", rest, header_.streamlines));
      }
      break;
    }
    const std::size_t streamlines = batch.streamline_count();
    if (streamlines > 0 &&
        (streamlines >= max_points || record->points > max_points - std::min(max_points, batch.point_count()))) {
      break;
    }
    copy_record(*record, as_float, batch);
    batch.offsets.push_back(batch.offsets.back() + record->points);
    next_place_ = record->end;
    ++streamlines_read_;
  }
  return batch.streamline_count() > 0;
}

}  // namespace

bool looks_like_trk(std::span<const std::byte> file) {
  return file.size() >= trk_magic.size() && std::memcmp(file.data(), trk_magic.data(), trk_magic.size() - 1) == 0;
}

Result<std::unique_ptr<TractogramReader>> open_trk(std::string shown, FileBytes file) {
  return open_walked<TrkReader>(std::move(shown), std::move(file));
}

}  // namespace cingulum
