#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_fields.hpp"
#include "formats/corrupt.hpp"
#include "formats/sidecar.hpp"
#include "formats/trx.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

Result<const Json*> member(const Json& header, const char* name) {
  const auto found = header.find(name);
  if (found == header.end()) return corrupt("{} is missing", name);
  return &*found;
}

Result<std::uint64_t> count_from(const Json& value, const char* name) {
  // Others write 12.0.
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number >= 0 && number <= 9007199254740992.0 && number == std::floor(number)) {
      return static_cast<std::uint64_t>(number);
    }
  }
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0)
    return static_cast<std::uint64_t>(value.get<std::int64_t>());
  return corrupt("{} is {}, not a whole number of zero or more", name, value.dump().substr(0, 60));
}

}  // namespace

Result<TrxHeader> parse_trx_header(std::string_view text) {
  CGL_TRY_ASSIGN(const Json header, parse_json(text));
  if (!header.is_object()) return corrupt("it is not a json object");

  TrxHeader result;
  CGL_TRY_ASSIGN(const Json* streamlines, member(header, "NB_STREAMLINES"));
  CGL_TRY_ASSIGN(result.streamlines, count_from(*streamlines, "NB_STREAMLINES"));
  CGL_TRY_ASSIGN(const Json* points, member(header, "NB_VERTICES"));
  CGL_TRY_ASSIGN(result.points, count_from(*points, "NB_VERTICES"));

  CGL_TRY_ASSIGN(const Json* dimensions, member(header, "DIMENSIONS"));
  if (!dimensions->is_array() || dimensions->size() != 3) return corrupt("DIMENSIONS does not have 3 numbers");
  for (std::size_t i = 0; i < 3; ++i) {
    CGL_TRY_ASSIGN(const std::uint64_t size, count_from((*dimensions)[i], "an entry of DIMENSIONS"));
    // The specification's uint16.
    if (size == 0 || size > 0xffff) return corrupt("DIMENSIONS has the size {}, not 1 to 65535", size);
    result.reference.size[i] = static_cast<std::int64_t>(size);
  }

  CGL_TRY_ASSIGN(const Json* affine, member(header, "VOXEL_TO_RASMM"));
  std::array<double, 16> numbers = {};
  std::array<std::array<double, 4>, 4> rows = {};
  if (read_json(*affine, "VOXEL_TO_RASMM", rows)) {
    for (std::size_t i = 0; i < 16; ++i) numbers[i] = rows[i / 4][i % 4];
  } else if (!read_json(*affine, "VOXEL_TO_RASMM", numbers)) {
    return corrupt("VOXEL_TO_RASMM is not a 4 x 4 matrix of finite numbers");
  }
  if (numbers[12] != 0 || numbers[13] != 0 || numbers[14] != 0 || numbers[15] != 1) {
    return corrupt("the last row of VOXEL_TO_RASMM is {} {} {} {}, not 0 0 0 1", numbers[12], numbers[13], numbers[14],
                   numbers[15]);
  }
  for (std::size_t i = 0; i < 12; ++i) result.reference.voxel_to_world.rows[i] = numbers[i];
  return result;
}

// Written by hand: a failure to allocate inside a half-made json of nlohmann ends the process, and this one is made
// while a file is being written.
std::string format_trx_header(const TrxHeader& header, std::size_t padded_to) {
  const auto number = [](double value) { return Json(value).dump(); };
  const auto& [nx, ny, nz] = header.reference.size;
  std::string text = fmt::format(R"({{"DIMENSIONS":[{},{},{}],"VOXEL_TO_RASMM":[)", nx, ny, nz);
  const Affine& affine = header.reference.voxel_to_world;
  for (int row = 0; row < 3; ++row) {
    text += fmt::format("[{},{},{},{}],", number(affine.at(row, 0)), number(affine.at(row, 1)),
                        number(affine.at(row, 2)), number(affine.at(row, 3)));
  }
  text +=
      fmt::format(R"([0.0,0.0,0.0,1.0]],"NB_STREAMLINES":{},"NB_VERTICES":{}}})", header.streamlines, header.points);
  if (text.size() < padded_to) text.insert(text.size() - 1, padded_to - text.size(), ' ');
  return text;
}

Status check_trx_name(std::string_view kind, std::string_view name) {
  bool good = !name.empty() && name.size() <= 200;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '.' || c == '/' || c == '\\' || c == ':')
      good = false;
  }
  if (good) return {};
  return fail(ErrorKind::invalid_argument,
              "the {} name '{}' cannot be stored in TRX: dots, slashes, backslashes, colons and control characters are "
              "not allowed, and 1 to 200 bytes are",
              kind, name);
}

}  // namespace cingulum
