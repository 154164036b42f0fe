#include "formats/trk.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "formats/element_number.hpp"
#include "formats/guarded_writer.hpp"
#include "formats/streamline_seeker.hpp"
#include "formats/tractogram_batch.hpp"

namespace cingulum {
namespace {

using Bytes = std::span<const std::byte>;
using numerics::Vec3d;

constexpr std::string_view trk_magic{"TRACK\0", 6};
constexpr std::size_t header_bytes = 1000;
constexpr std::size_t field_name_bytes = 20;

// Where the fields of the header lie.
constexpr std::size_t at_dimensions = 6;
constexpr std::size_t at_voxel_size = 12;
constexpr std::size_t at_scalar_count = 36;
constexpr std::size_t at_scalar_names = 38;
constexpr std::size_t at_property_count = 238;
constexpr std::size_t at_property_names = 240;
constexpr std::size_t at_vox_to_ras = 440;
constexpr std::size_t at_voxel_order = 948;
constexpr std::size_t at_pad2 = 952;
constexpr std::size_t at_image_orientation = 956;
constexpr std::size_t at_count = 988;
constexpr std::size_t at_version = 992;
constexpr std::size_t at_header_size = 996;

// Names are Latin-1 in the file and UTF-8 in memory.
std::string utf8_of_latin1(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result.push_back(c);
    } else {
      result.push_back(static_cast<char>(0xc0U | (byte >> 6U)));
      result.push_back(static_cast<char>(0x80U | (byte & 0x3fU)));
    }
  }
  return result;
}

std::optional<std::string> latin1_of_utf8(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      result.push_back(text[i]);
      continue;
    }
    if ((byte & 0xfeU) != 0xc2U || i + 1 == text.size()) return std::nullopt;
    const auto next = static_cast<unsigned char>(text[++i]);
    if ((next & 0xc0U) != 0x80U) return std::nullopt;
    result.push_back(static_cast<char>(((byte & 0x03U) << 6U) | (next & 0x3fU)));
  }
  return result;
}

std::optional<std::string> encoded_name(const DataField& field) {
  std::optional<std::string> name = latin1_of_utf8(field.name);
  if (!name || name->empty() || name->find('\0') != std::string::npos) return std::nullopt;
  if (field.columns > 1) *name += std::string(1, '\0') + std::to_string(field.columns);
  if (name->size() > field_name_bytes) return std::nullopt;
  return name;
}

// The fields of one kind: names with their columns, and what is left over under one name of its own.
Status read_field_names(Bytes header, std::size_t at, std::int64_t columns, const char* rest_name,
                        std::vector<DataField>& fields) {
  if (columns < 0) return corrupt("header: {} {} are not possible", columns, rest_name);
  std::int64_t named = 0;
  const auto add = [&](std::string name, std::int64_t count) {
    std::string unique = name;
    for (int i = 2; std::any_of(fields.begin(), fields.end(), [&](const DataField& f) { return f.name == unique; });
         ++i) {
      unique = fmt::format("{}_{}", name, i);
    }
    fields.push_back({.name = std::move(unique), .type = float32_type, .columns = count});
    named += count;
  };
  for (std::size_t i = 0; i < trk_most_fields && columns > 0; ++i) {
    std::string_view text(reinterpret_cast<const char*>(header.data() + at + i * field_name_bytes), field_name_bytes);
    text = text.substr(0, text.find_last_not_of('\0') + 1);
    if (text.empty()) continue;
    const std::size_t zero = text.find('\0');
    std::int64_t count = 1;
    if (zero != std::string_view::npos) {
      const std::string_view number = text.substr(zero + 1);
      const char* const end = number.data() + number.size();
      const auto parsed = std::from_chars(number.data(), end, count);
      if (zero == 0 || parsed.ec != std::errc() || parsed.ptr != end || count < 0) {
        return corrupt("header: name {} of the {} is malformed", i, rest_name);
      }
      if (count == 0) continue;
    }
    if (count > columns - named) {
      return corrupt("header: the names of the {} need more than the {} columns there are", rest_name, columns);
    }
    add(utf8_of_latin1(text.substr(0, zero)), count);
  }
  if (named < columns) add(rest_name, columns - named);
  return {};
}

// "LPS" as world axes and directions.
Result<std::array<AxisOrientation, 3>> parse_voxel_order(std::string_view text) {
  std::array<AxisOrientation, 3> result;
  std::array<bool, 3> taken = {};
  const auto malformed = [&] {
    return corrupt("header: the voxel order '{}' is not three letters of LR, AP, SI", text);
  };
  if (text.size() != 3) return malformed();
  for (std::size_t i = 0; i < 3; ++i) {
    constexpr std::string_view positive = "RAS";
    constexpr std::string_view negative = "LPI";
    const char letter = static_cast<char>(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i]);
    const std::size_t up = positive.find(letter);
    const std::size_t down = negative.find(letter);
    if (up == std::string_view::npos && down == std::string_view::npos) return malformed();
    const std::size_t axis = up != std::string_view::npos ? up : down;
    if (taken[axis]) return malformed();
    taken[axis] = true;
    result[i] = {.world_axis = static_cast<int>(axis), .direction = up != std::string_view::npos ? 1 : -1};
  }
  return result;
}

// From TrackVis millimetres to the world. With axes in another order than the affine's, this is nibabel's map: axis i
// of the header takes the coordinate of the affine's axis of the same world direction. For cyclic orders one could
// argue for the inverse; all files in use have equal axes, or differ in direction only. The size of the grid matters
// only on axes that are turned round.
Result<Affine> trackvis_to_world(const ImageGeometry& reference, const std::array<double, 3>& voxel_size,
                                 const std::array<AxisOrientation, 3>& order) {
  CGL_TRY_ASSIGN(const auto own, orientation_of(reference.voxel_to_world));
  Affine to_voxel;
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t from = 0;
    while (own[from].world_axis != order[i].world_axis) ++from;
    const bool flipped = own[from].direction != order[i].direction;
    if (flipped && reference.size[i] < 1) {
      return fail(ErrorKind::corrupt,
                  "the voxel order runs against its axis {}, and a grid of {} voxels does not say from where to count",
                  i, reference.size[i]);
    }
    const double sign = flipped ? -1.0 : 1.0;
    const int row = static_cast<int>(i);
    for (int column = 0; column < 4; ++column) to_voxel.at(row, column) = 0;
    to_voxel.at(row, static_cast<int>(from)) = sign / voxel_size[from];
    // p / size - 1/2, or (n - 1) minus that.
    to_voxel.at(row, 3) = flipped ? static_cast<double>(reference.size[i] - 1) + 0.5 : -0.5;
  }
  return compose(reference.voxel_to_world, to_voxel);
}

class TrkReader final : public TractogramReader, public StreamlineSeeker {
 public:
  explicit TrkReader(std::string shown) : shown_(std::move(shown)) {
    layout_.format = TractogramFormat::trk;
    layout_.position_type = float32_type;
  }

  [[nodiscard]] Status open(FileBytes file);

  const TractogramLayout& layout() const override { return layout_; }
  Result<bool> next(TractogramBatch& batch, std::size_t max_points, bool as_float) override {
    return add_file_context(catch_out_of_memory([&] { return read_batch(batch, max_points, as_float); }), "reading",
                            shown_);
  }
  Result<std::vector<TractogramGroup>> groups() override { return std::vector<TractogramGroup>{}; }
  // There is no checksum: the records are walked through.
  Status verify() override {
    std::size_t at = header_bytes;
    std::uint64_t streamline = 0;
    while (true) {
      auto record = find_record(at, streamline);
      if (!record) return add_context(Status(tl::make_unexpected(std::move(record.error()))), "verifying {}", shown_);
      if (!*record) return {};
      at = (*record)->end;
      ++streamline;
    }
  }
  Result<std::uint64_t> count() override {
    if (claimed_count_ > 0) return claimed_count_;
    return add_file_context(catch_out_of_memory([&] { return walk_to(std::numeric_limits<std::uint64_t>::max()); }),
                            "reading", shown_);
  }
  Status seek(std::uint64_t streamline) override {
    CGL_TRY_ASSIGN(const std::uint64_t reached,
                   add_file_context(catch_out_of_memory([&] { return walk_to(streamline); }), "reading", shown_));
    if (reached == streamline) return {};
    return fail(ErrorKind::not_found, "{}: there is no streamline {}", shown_, streamline);
  }

 private:
  struct Record {
    std::size_t points = 0;
    std::size_t begin = 0;  // of the points
    std::size_t end = 0;
  };
  // The record of the streamline at byte `at`; none at the end.
  [[nodiscard]] Result<std::optional<Record>> find_record(std::size_t at, std::uint64_t streamline) const;
  [[nodiscard]] Status read_header(Bytes header);
  [[nodiscard]] Result<bool> read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float);
  // Makes this streamline the next one, or the end where there are fewer; answers which it is.
  [[nodiscard]] Result<std::uint64_t> walk_to(std::uint64_t streamline);
  void copy_record(const Record& record, bool as_float, TractogramBatch& batch) const;
  template <class T>
  [[nodiscard]] T number(std::size_t at) const {
    return load<T>(file_.bytes(), at, big_endian_);
  }

  std::string shown_;
  TractogramLayout layout_;
  FileBytes file_;
  bool big_endian_ = false;
  std::uint64_t claimed_count_ = 0;
  std::size_t scalar_columns_ = 0;
  std::size_t property_columns_ = 0;
  Affine to_world_;
  std::size_t next_record_ = header_bytes;
  std::uint64_t streamlines_read_ = 0;
  bool ended_ = false;
  // Where every such streamline begins, as far as somebody walked.
  static constexpr std::uint64_t known_step = 8;
  std::vector<std::size_t> known_ = {header_bytes};
};

Status TrkReader::read_header(Bytes header) {
  if (number<std::int32_t>(at_header_size) != static_cast<std::int32_t>(header_bytes)) {
    big_endian_ = true;
    if (number<std::int32_t>(at_header_size) != static_cast<std::int32_t>(header_bytes)) {
      return corrupt("header: its size is {} in one byte order and {} in the other, not {}",
                     load<std::int32_t>(header, at_header_size, false),
                     load<std::int32_t>(header, at_header_size, true), header_bytes);
    }
  }
  auto& warnings = layout_.warnings;
  const auto version = number<std::int32_t>(at_version);
  if (version < 1 || version > 3) return corrupt("header: version {} is not supported (known: 1, 2, 3)", version);
  if (version != 2) warnings.push_back(fmt::format("header: version {} is read as version 2", version));

  ImageGeometry reference;
  bool recorded = version != 1 && number<float>(at_vox_to_ras + 15 * 4) != 0;
  if (recorded) {
    for (std::size_t i = 0; i < 12; ++i) {
      reference.voxel_to_world.rows[i] = static_cast<double>(number<float>(at_vox_to_ras + i * 4));
    }
    const bool plain = number<float>(at_vox_to_ras + 48) == 0 && number<float>(at_vox_to_ras + 52) == 0 &&
                       number<float>(at_vox_to_ras + 56) == 0 && number<float>(at_vox_to_ras + 60) == 1;
    if (!plain) warnings.emplace_back("header: the last row of vox_to_ras is not 0 0 0 1 and is ignored");
  } else {
    warnings.emplace_back("header: vox_to_ras is not recorded; it is taken to be the identity");
  }
  std::array<double, 3> voxel_size = {};
  for (std::size_t i = 0; i < 3; ++i) {
    reference.size[i] = number<std::int16_t>(at_dimensions + i * 2);
    voxel_size[i] = static_cast<double>(number<float>(at_voxel_size + i * 4));
    if (!std::isfinite(voxel_size[i])) return corrupt("header: the voxel size {} is not finite", voxel_size[i]);
    if (voxel_size[i] < 0) warnings.push_back(fmt::format("header: the voxel size {} is negative", voxel_size[i]));
    if (voxel_size[i] == 0) {
      voxel_size[i] = reference.voxel_mm()[i];
      warnings.push_back(fmt::format("header: a voxel size of 0 is replaced by {} from vox_to_ras", voxel_size[i]));
    }
  }
  std::string_view order_text(reinterpret_cast<const char*>(header.data() + at_voxel_order), 4);
  order_text = order_text.substr(0, order_text.find('\0'));
  if (order_text.empty()) {
    warnings.emplace_back("header: the voxel order is not recorded; it is taken to be LPS, TrackVis's default");
    order_text = "LPS";
  }
  CGL_TRY_ASSIGN(const auto order, parse_voxel_order(order_text));
  CGL_TRY_ASSIGN(to_world_, add_context(trackvis_to_world(reference, voxel_size, order), "header: vox_to_ras"));
  if (!to_world_.is_finite()) return corrupt("header: voxel sizes and vox_to_ras do not give a finite map");
  for (std::int64_t& size : reference.size) {
    if (size < 1) warnings.push_back(fmt::format("header: a grid of {} voxels is taken as 1", size));
    size = std::max<std::int64_t>(1, size);
  }
  layout_.reference = reference;

  const std::int64_t scalars = number<std::int16_t>(at_scalar_count);
  const std::int64_t properties = number<std::int16_t>(at_property_count);
  CGL_TRY(read_field_names(header, at_scalar_names, scalars, "scalars", layout_.point_fields));
  CGL_TRY(read_field_names(header, at_property_names, properties, "properties", layout_.streamline_fields));
  scalar_columns_ = static_cast<std::size_t>(scalars);
  property_columns_ = static_cast<std::size_t>(properties);

  const auto count = number<std::int32_t>(at_count);
  if (count < 0) return corrupt("header: {} streamlines are not possible", count);
  claimed_count_ = static_cast<std::uint64_t>(count);
  const std::uint64_t least_bytes = claimed_count_ * (4 + property_columns_ * 4);
  if (least_bytes > file_.bytes().size() - header_bytes) {
    return corrupt(
        "{} bytes are too few for the {} streamlines of the header, which need {} at least: the file is cut "
        "off or damaged",
        file_.bytes().size(), count, header_bytes + least_bytes);
  }
  if (count > 0) layout_.streamline_count = count;
  return {};
}

Status TrkReader::open(FileBytes file) {
  file_ = std::move(file);
  if (file_.bytes().size() < header_bytes) {
    return corrupt("{} bytes are too few for the header of {}: the file is cut off", file_.bytes().size(),
                   header_bytes);
  }
  return read_header(file_.bytes().first(header_bytes));
}

Result<std::optional<TrkReader::Record>> TrkReader::find_record(std::size_t at, std::uint64_t streamline) const {
  const std::size_t size = file_.bytes().size();
  if (claimed_count_ > 0 ? streamline == claimed_count_ : at == size) return std::nullopt;
  if (size - at < 4) {
    return corrupt("streamline {} at byte {}: its number of points needs 4 bytes, the file has {} left: it is cut off",
                   streamline, at, size - at);
  }
  const auto points = number<std::int32_t>(at);
  if (points < 0) return corrupt("streamline {} at byte {} has {} points", streamline, at, points);
  const std::uint64_t needed =
      (static_cast<std::uint64_t>(points) * (3 + scalar_columns_) + property_columns_) * sizeof(float);
  if (needed > size - at - 4) {
    return corrupt(
        "streamline {} at byte {}: its {} points need {} bytes, the file has {} left: it is cut off or damaged",
        streamline, at, points, needed, size - at - 4);
  }
  return Record{
      .points = static_cast<std::size_t>(points), .begin = at + 4, .end = at + 4 + static_cast<std::size_t>(needed)};
}

Result<std::uint64_t> TrkReader::walk_to(std::uint64_t streamline) {
  const std::uint64_t step = std::min<std::uint64_t>(streamline / known_step, known_.size() - 1);
  std::uint64_t here = step * known_step;
  std::size_t at = known_[static_cast<std::size_t>(step)];
  while (here < streamline) {
    CGL_TRY_ASSIGN(const std::optional<Record> record, find_record(at, here));
    if (!record) break;
    at = record->end;
    ++here;
    if (here == known_.size() * known_step) known_.push_back(at);
  }
  next_record_ = at;
  streamlines_read_ = here;
  ended_ = false;
  return here;
}

void TrkReader::copy_record(const Record& record, bool as_float, TractogramBatch& batch) const {
  const std::size_t stride = (3 + scalar_columns_) * sizeof(float);
  const std::byte* const file = file_.bytes().data();
  const auto number_at = [&](std::size_t at) {
    float value;
    std::memcpy(&value, file + at, sizeof(value));
    return static_cast<double>(big_endian_ ? swap_bytes(value) : value);
  };
  const Affine to_world = to_world_;
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
    if (big_endian_) swap_in_place(std::span(to).subspan(begin), sizeof(float));
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
    CGL_TRY_ASSIGN(const std::optional<Record> record, find_record(next_record_, streamlines_read_));
    if (!record) {
      ended_ = true;
      layout_.streamline_count = static_cast<std::int64_t>(streamlines_read_);
      const std::size_t rest = file_.bytes().size() - next_record_;
      if (rest > 0) {
        layout_.warnings.push_back(
            fmt::format("{} bytes after the {} streamlines of the header were left out", rest, claimed_count_));
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
    next_record_ = record->end;
    ++streamlines_read_;
  }
  return batch.streamline_count() > 0;
}

class TrkWriter final : public GuardedWriter {
 public:
  TrkWriter(std::string shown, TractogramLayout layout, AtomicFile file)
      : GuardedWriter(std::move(shown), std::move(layout)), file_(std::move(file)) {}

  [[nodiscard]] Status begin();

 private:
  Status append_batch(const TractogramBatch& batch) override;
  void discard() noexcept override { file_.discard(); }
  Status write_end() override {
    const auto count = static_cast<std::int32_t>(streamlines_);
    CGL_TRY(file_.write_at(at_count, std::as_bytes(std::span(&count, 1))));
    return file_.commit();
  }
  AtomicFile file_;
  Affine to_trackvis_;
  StreamlineParts parts_;
  std::uint64_t streamlines_ = 0;
};

Status TrkWriter::begin() {
  std::array<std::byte, header_bytes> header = {};
  std::memcpy(header.data(), trk_magic.data(), trk_magic.size());
  // The header's float32 are the truth from here on: positions are computed with them, as every reader does.
  ImageGeometry stored = *layout_.reference;
  for (double& number : stored.voxel_to_world.rows) number = static_cast<double>(static_cast<float>(number));
  if (!stored.voxel_to_world.is_finite())
    return fail(ErrorKind::invalid_argument, "the affine of the reference is not finite");
  std::array<double, 3> voxel_size = stored.voxel_mm();
  for (std::size_t i = 0; i < 3; ++i) {
    if (stored.size[i] < 1 || stored.size[i] > std::numeric_limits<std::int16_t>::max()) {
      return fail(ErrorKind::invalid_argument, "TRK holds grids of 1 to 32767 voxels per axis, not {}", stored.size[i]);
    }
    store(header, at_dimensions + i * 2, static_cast<std::int16_t>(stored.size[i]));
    voxel_size[i] = static_cast<double>(static_cast<float>(voxel_size[i]));
    store(header, at_voxel_size + i * 4, static_cast<float>(voxel_size[i]));
  }
  for (std::size_t i = 0; i < 12; ++i) {
    store(header, at_vox_to_ras + i * 4, static_cast<float>(stored.voxel_to_world.rows[i]));
  }
  store(header, at_vox_to_ras + 60, 1.0F);
  CGL_TRY_ASSIGN(const auto order, orientation_of(stored.voxel_to_world));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto letter = (order[i].direction > 0 ? "RAS" : "LPI")[order[i].world_axis];
    header[at_voxel_order + i] = static_cast<std::byte>(letter);
    header[at_pad2 + i] = static_cast<std::byte>(letter);
  }
  // TrackVis: the first two columns of the rotation, in LPS.
  for (std::size_t column = 0; column < 2; ++column) {
    for (std::size_t row = 0; row < 3; ++row) {
      const double cosine =
          stored.voxel_to_world.at(static_cast<int>(row), static_cast<int>(column)) / voxel_size[column];
      store(header, at_image_orientation + (column * 3 + row) * 4, static_cast<float>(row < 2 ? -cosine : cosine));
    }
  }
  CGL_TRY_ASSIGN(const Affine to_world, trackvis_to_world(stored, voxel_size, order));
  CGL_TRY_ASSIGN(to_trackvis_, to_world.inverse());

  const auto put_fields = [&](const std::vector<DataField>& fields, std::size_t at_number, std::size_t at_names,
                              const char* kind) -> Status {
    if (fields.size() > trk_most_fields) {
      return fail(ErrorKind::invalid_argument, "TRK holds {} fields per {}, not {}", trk_most_fields, kind,
                  fields.size());
    }
    std::int64_t columns = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      CGL_TRY(check_trk_field(fields[i]));
      const std::string name = *encoded_name(fields[i]);
      std::memcpy(header.data() + at_names + i * field_name_bytes, name.data(), name.size());
      columns += fields[i].columns;
    }
    if (columns > std::numeric_limits<std::int16_t>::max()) {
      return fail(ErrorKind::invalid_argument, "TRK holds 32767 numbers per {}, not {}", kind, columns);
    }
    store(header, at_number, static_cast<std::int16_t>(columns));
    return {};
  };
  CGL_TRY(put_fields(layout_.point_fields, at_scalar_count, at_scalar_names, "point"));
  CGL_TRY(put_fields(layout_.streamline_fields, at_property_count, at_property_names, "streamline"));
  store(header, at_version, std::int32_t{2});
  store(header, at_header_size, static_cast<std::int32_t>(header_bytes));
  return file_.append(header);
}

Status TrkWriter::append_batch(const TractogramBatch& batch) {
  CGL_TRY(check_batch(layout_, batch));
  if (streamlines_ + batch.streamline_count() > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    return fail(ErrorKind::invalid_argument, "TRK counts to 2147483647 streamlines; use TRX");
  }
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

Status check_trk_field(const DataField& field) {
  if (field.type.code == ElementType::Code::complex || field.columns < 1) {
    return fail(ErrorKind::invalid_argument, "TRK cannot hold the field '{}' of {} columns of {}", field.name,
                field.columns, field.type.name());
  }
  if (!encoded_name(field)) {
    return fail(
        ErrorKind::invalid_argument,
        "TRK cannot hold the field name '{}' with {} columns: it must be Latin-1 and take {} bytes at most, the "
        "number of columns included",
        field.name, field.columns, field_name_bytes);
  }
  return {};
}

namespace {

// The header of a file without its count.
Result<std::vector<std::byte>> header_without_count(Bytes file) {
  if (file.size() < header_bytes) return corrupt("{} bytes are too few for a header", file.size());
  std::vector<std::byte> header(file.begin(), file.begin() + header_bytes);
  std::fill_n(header.begin() + at_count, sizeof(std::int32_t), std::byte{});
  if (load<std::int32_t>(header, at_header_size, false) != static_cast<std::int32_t>(header_bytes)) {
    return fail(ErrorKind::unavailable, "its numbers are big-endian, and records are joined as they are");
  }
  return header;
}

}  // namespace

Result<TrkJoin> TrkJoin::create(const std::filesystem::path& out, Bytes first, const WriteOptions& options) {
  CGL_TRY_ASSIGN(std::vector<std::byte> header, header_without_count(first));
  CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(out, options));
  CGL_TRY(file.append(header));
  return TrkJoin(std::move(file), std::move(header));
}

Result<std::uint64_t> TrkJoin::add(Bytes file, std::uint64_t streamlines) {
  CGL_TRY_ASSIGN(const std::vector<std::byte> header, header_without_count(file));
  if (header != header_) return corrupt("its header is not that of the first part");
  const auto scalar_count = load<std::int16_t>(header, at_scalar_count);
  const auto property_count = load<std::int16_t>(header, at_property_count);
  if (scalar_count < 0 || property_count < 0) return corrupt("header: a negative number of fields");
  const auto scalars = static_cast<std::uint64_t>(scalar_count);
  const auto properties = static_cast<std::uint64_t>(property_count);
  std::size_t at = header_bytes;
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
  if (streamlines_ + streamlines > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    return fail(ErrorKind::invalid_argument, "TRK counts to 2147483647 streamlines; use TRX");
  }
  const Bytes records = file.subspan(header_bytes, at - header_bytes);
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
  const auto count = static_cast<std::int32_t>(streamlines_);
  CGL_TRY(file_.write_at(at_count, std::as_bytes(std::span(&count, 1))));
  return file_.commit();
}

bool looks_like_trk(std::span<const std::byte> file) {
  return file.size() >= trk_magic.size() && std::memcmp(file.data(), trk_magic.data(), trk_magic.size() - 1) == 0;
}

Result<std::unique_ptr<TractogramReader>> open_trk(std::string shown, FileBytes file) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramReader>> {
    auto reader = std::make_unique<TrkReader>(shown);
    CGL_TRY(add_file_context(reader->open(std::move(file)), "reading", shown));
    return reader;
  });
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
