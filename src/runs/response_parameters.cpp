#include "runs/response_parameters.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "base/log.hpp"

namespace cingulum {
namespace {

Result<std::array<std::int64_t, 3>> parse_voxel(const std::string& text) {
  std::array<std::int64_t, 3> voxel = {};
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto [stop, error] = std::from_chars(next, end, voxel[axis]);
    const bool last = axis == 2;
    if (error != std::errc() || voxel[axis] < 0 || (last ? stop != end : stop == end || *stop != ',')) {
      return fail(ErrorKind::invalid_argument, "{} '{}' is not three voxel indices I,J,K",
                  argument_name("response_centre"), text);
    }
    next = last ? stop : stop + 1;
  }
  return voxel;
}

}  // namespace

std::vector<Argument> response_arguments() {
  return {
      {.name = "response",
       .type = ArgumentType::file_in,
       .help = "csd: response of a single fibre, 'l1 l2 l3 S0', or zonal harmonics as MRtrix3 writes them; "
               "estimated unless given"},
      {.name = "response-fa",
       .type = ArgumentType::real,
       .help =
           "csd: voxels with a higher fractional anisotropy make the response; where the box of the default values has "
           "less than 10 of them it is widened to the whole mask, then the threshold lowered, with a note",
       .range = {.minimum = 0, .maximum = 1},
       .default_text = "0.7"},
      {.name = "response-radius",
       .type = ArgumentType::integer,
       .help = "csd: they are looked for in a box with this many voxels to each side",
       .range = {.minimum = 0},
       .default_text = "10"},
      {.name = "response-centre",
       .type = ArgumentType::text,
       .help = "csd: the box's middle voxel; that of the image when not given",
       .metavar = "I,J,K"}};
}

Result<ResponseBox> response_box(const ResponseParameters& parameters) {
  const auto means_nothing = [&](bool given, std::string_view name) {
    if (!parameters.response.given() || !given) return;
    log_warning("{} means nothing beside {}: nothing is estimated", argument_name(name), argument_name("response"));
  };
  means_nothing(parameters.response_fa.given(), "response_fa");
  means_nothing(parameters.response_radius.given(), "response_radius");
  means_nothing(parameters.response_centre.given(), "response_centre");
  ResponseBox box;
  box.least_fa = parameters.response_fa.value();
  box.radius = parameters.response_radius.value();
  if (parameters.response_centre.given()) {
    CGL_TRY_ASSIGN(box.centre, parse_voxel(parameters.response_centre.value()));
  }
  // By the values and not by who gave them, so that a run from its sidecar does the same.
  const ResponseBox usual;
  box.widen = !box.centre && box.radius == usual.radius && box.least_fa == usual.least_fa;
  return box;
}

}  // namespace cingulum
