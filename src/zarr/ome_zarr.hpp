// OME-Zarr: what the attributes of a group say about the image in it. Versions 0.4 (Zarr v2) and 0.5 (v3) are read and
// written, 0.6 is read. Axes, units, and of each level the path, scale and translation, with transformations of levels
// and of the whole image composed, so that callers see one number a dimension. A transformation that is not understood
// is refused by name, and every refusal is one line with the group and the field. Pixels are pyramid.hpp's and
// array.hpp's; here is JSON alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "zarr/array.hpp"

namespace cingulum::zarr {

enum class OmeVersion : std::uint8_t { v0_4, v0_5, v0_6 };
[[nodiscard]] std::string_view ome_version_name(OmeVersion version);  // "0.5"
// The version of Zarr that it is written in.
[[nodiscard]] int zarr_format_of(OmeVersion version);

struct OmeAxis {
  std::string name;
  std::string type;  // "space", "time", "channel", another, or none
  std::string unit;  // a word such as "micrometer", or none
  [[nodiscard]] bool is_space() const { return type == "space"; }
  [[nodiscard]] bool operator==(const OmeAxis&) const = default;
};

struct OmeLevel {
  std::string path;                 // of the array, below the group
  std::vector<double> scale;        // between neighbours along each axis, in the axis' unit
  std::vector<double> translation;  // of the first element's centre
  // Rows of rank + 1 numbers, where a transformation of 0.6 is more than scale and translation; else empty. Scale then
  // holds the lengths of the matrix' columns.
  std::vector<double> affine = {};
};

struct OmeMultiscale {
  std::string name = {};
  std::string type = {};  // how levels were made: "mean", ...
  std::vector<OmeAxis> axes = {};
  std::vector<OmeLevel> levels = {};   // finest first
  Json metadata = {};                  // of how levels were made; null: none
  Json others = Json::object();        // further members, kept
  std::string coordinate_system = {};  // 0.6: the one that scale and translation lead to
};

struct OmeWindow {
  double min = 0, max = 0, start = 0, end = 0;

  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("min", self.min);
    visit("max", self.max);
    visit("start", self.start);
    visit("end", self.end);
  }
};

struct OmeChannel {
  std::string label = {};
  std::string color = {};  // "FFFFFF"
  std::optional<OmeWindow> window = {};
};

struct OmeImage {
  OmeVersion version = OmeVersion::v0_5;
  std::vector<OmeMultiscale> multiscales;  // at least one
  Json omero;                              // null: none
  Json ome_others = Json::object();        // further OME metadata of the group: labels, image-label, ...
  Json others = Json::object();            // attributes that are no OME metadata
  std::vector<std::string> notes;          // what was unusual and accepted

  [[nodiscard]] bool is_label() const { return ome_others.contains("image-label"); }
};

// Empty where the attributes describe no image. `group` is for messages.
[[nodiscard]] Result<std::optional<OmeImage>> parse_ome_image(const Json& attributes, std::string_view group);

// The channels that omero describes; what is not as it should be is left out and reported in `notes`.
[[nodiscard]] std::vector<OmeChannel> ome_channels(const Json& omero, std::vector<std::string>& notes);
[[nodiscard]] Json make_omero(std::span<const OmeChannel> channels);

// The attributes of a group for this image. 0.6 is not written; an affine beyond scale and translation has no place in
// the others and is refused.
[[nodiscard]] Result<Json> ome_attributes(const OmeImage& image, OmeVersion version, std::string_view group);
// The same for the attributes of any group: of an image, of labels, of a plate; those without OME metadata stay.
[[nodiscard]] Result<Json> convert_ome_attributes(const Json& attributes, OmeVersion version, std::string_view group);

// Level k of an image whose finest level has `finest` and covers the same box: the scale grows with the ratio of the
// sizes, and the centre of the first element moves by half of what the scale has grown.
[[nodiscard]] OmeLevel level_of_size(const OmeLevel& finest, std::span<const std::uint64_t> finest_shape,
                                     std::span<const std::uint64_t> shape, std::string path);
// The level that begins `origin` elements further.
[[nodiscard]] OmeLevel cropped_level(const OmeLevel& level, std::span<const std::uint64_t> origin);

// Axes of an array that says nothing of them but, perhaps, the names of its dimensions: t and time are of type time, c
// and channel of type channel, others of type space. Where that makes no image, or there are no names, the last of
// (t, c, z, y, x), of four without c. No units.
[[nodiscard]] std::vector<OmeAxis> axes_of_names(std::span<const std::string> names, std::size_t rank);

// The arrays of the levels, each of the rank of the axes, one type, sizes that do not grow, and names of dimensions
// that do not contradict the axes.
[[nodiscard]] Result<std::vector<Array>> open_levels(const std::shared_ptr<const Store>& store,
                                                     const std::string& group, const OmeMultiscale& multiscale);

}  // namespace cingulum::zarr
