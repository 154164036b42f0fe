#include "formats/trk_header.hpp"

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
#include "formats/tractogram_batch.hpp"
#include "formats/trk.hpp"

namespace cingulum {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t field_name_bytes = 20;

// Where the other fields of the header lie.
constexpr std::size_t at_dimensions = 6;
constexpr std::size_t at_voxel_size = 12;
constexpr std::size_t at_scalar_names = 38;
constexpr std::size_t at_property_names = 240;
constexpr std::size_t at_vox_to_ras = 440;
constexpr std::size_t at_voxel_order = 948;
constexpr std::size_t at_pad2 = 952;
constexpr std::size_t at_image_orientation = 956;
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

struct NumbersAt {
  Bytes header;
  bool big_endian;

  template <class T>
  [[nodiscard]] T get(std::size_t at) const {
    return load<T>(header, at, big_endian);
  }
};

}  // namespace

Result<TrkHeader> read_trk_header(Bytes file, TractogramLayout& layout) {
  if (file.size() < trk_header_bytes) {
    return corrupt("{} bytes are too few for the header of {}: the file is cut off", file.size(), trk_header_bytes);
  }
  TrkHeader result;
  const Bytes header = file.first(trk_header_bytes);
  if (load<std::int32_t>(header, at_header_size, false) != static_cast<std::int32_t>(trk_header_bytes)) {
    result.big_endian = true;
    if (load<std::int32_t>(header, at_header_size, true) != static_cast<std::int32_t>(trk_header_bytes)) {
      return corrupt("header: its size is {} in one byte order and {} in the other, not {}",
                     load<std::int32_t>(header, at_header_size, false),
                     load<std::int32_t>(header, at_header_size, true), trk_header_bytes);
    }
  }
  const NumbersAt numbers{header, result.big_endian};
  auto& warnings = layout.warnings;
  const auto version = numbers.get<std::int32_t>(at_version);
  if (version < 1 || version > 3) return corrupt("header: version {} is not supported (known: 1, 2, 3)", version);
  if (version != 2) warnings.push_back(fmt::format("header: version {} is read as version 2", version));

  ImageGeometry reference;
  const bool recorded = version != 1 && numbers.get<float>(at_vox_to_ras + 15 * 4) != 0;
  if (recorded) {
    for (std::size_t i = 0; i < 12; ++i) {
      reference.voxel_to_world.rows[i] = static_cast<double>(numbers.get<float>(at_vox_to_ras + i * 4));
    }
    const bool plain = numbers.get<float>(at_vox_to_ras + 48) == 0 && numbers.get<float>(at_vox_to_ras + 52) == 0 &&
                       numbers.get<float>(at_vox_to_ras + 56) == 0 && numbers.get<float>(at_vox_to_ras + 60) == 1;
    if (!plain) warnings.emplace_back("header: the last row of vox_to_ras is not 0 0 0 1 and is ignored");
  } else {
    warnings.emplace_back("header: vox_to_ras is not recorded; it is taken to be the identity");
  }
  std::array<double, 3> voxel_size = {};
  for (std::size_t i = 0; i < 3; ++i) {
    reference.size[i] = numbers.get<std::int16_t>(at_dimensions + i * 2);
    voxel_size[i] = static_cast<double>(numbers.get<float>(at_voxel_size + i * 4));
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
  CGL_TRY_ASSIGN(result.to_world, add_context(trackvis_to_world(reference, voxel_size, order), "header: vox_to_ras"));
  if (!result.to_world.is_finite()) return corrupt("header: voxel sizes and vox_to_ras do not give a finite map");
  for (std::int64_t& size : reference.size) {
    if (size < 1) warnings.push_back(fmt::format("header: a grid of {} voxels is taken as 1", size));
    size = std::max<std::int64_t>(1, size);
  }
  layout.reference = reference;

  const std::int64_t scalars = numbers.get<std::int16_t>(trk_at_scalar_count);
  const std::int64_t properties = numbers.get<std::int16_t>(trk_at_property_count);
  CGL_TRY(read_field_names(header, at_scalar_names, scalars, "scalars", layout.point_fields));
  CGL_TRY(read_field_names(header, at_property_names, properties, "properties", layout.streamline_fields));
  result.scalar_columns = static_cast<std::size_t>(scalars);
  result.property_columns = static_cast<std::size_t>(properties);

  const auto count = numbers.get<std::int32_t>(trk_at_count);
  if (count < 0) return corrupt("header: {} streamlines are not possible", count);
  result.streamlines = static_cast<std::uint64_t>(count);
  const std::uint64_t least_bytes = result.streamlines * (4 + result.property_columns * 4);
  if (least_bytes > file.size() - trk_header_bytes) {
    return corrupt(
        "{} bytes are too few for the {} streamlines of the header, which need {} at least: the file is cut "
        "off or damaged",
        file.size(), count, trk_header_bytes + least_bytes);
  }
  if (count > 0) layout.streamline_count = count;
  return result;
}

Result<NewTrkHeader> make_trk_header(const TractogramLayout& layout) {
  NewTrkHeader result;
  auto& header = result.bytes;
  std::memcpy(header.data(), trk_magic.data(), trk_magic.size());
  // The header's float32 are the truth from here on: positions are computed with them, as every reader does.
  ImageGeometry stored = *layout.reference;
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
  CGL_TRY_ASSIGN(result.to_trackvis, to_world.inverse());

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
  CGL_TRY(put_fields(layout.point_fields, trk_at_scalar_count, at_scalar_names, "point"));
  CGL_TRY(put_fields(layout.streamline_fields, trk_at_property_count, at_property_names, "streamline"));
  store(header, at_version, std::int32_t{2});
  store(header, at_header_size, static_cast<std::int32_t>(trk_header_bytes));
  return result;
}

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

Result<std::vector<std::byte>> trk_header_without_count(Bytes file) {
  if (file.size() < trk_header_bytes) return corrupt("{} bytes are too few for a header", file.size());
  std::vector<std::byte> header(file.begin(), file.begin() + trk_header_bytes);
  std::fill_n(header.begin() + trk_at_count, sizeof(std::int32_t), std::byte{});
  if (load<std::int32_t>(header, at_header_size, false) != static_cast<std::int32_t>(trk_header_bytes)) {
    return fail(ErrorKind::unavailable, "its numbers are big-endian, and records are joined as they are");
  }
  return header;
}

}  // namespace cingulum
