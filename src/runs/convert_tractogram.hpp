// A tractogram in another format, in a stream: the call behind `cingulum convert`. Data and groups are kept where the
// target can hold them; the outcome names what is lost. Images are zarr's: zarr/nifti_image.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "formats/tractogram.hpp"
#include "runs/layout_parameters.hpp"
#include "runs/machine.hpp"
#include "streamlines/linearise.hpp"

namespace cingulum {

struct ConvertRequest {
  std::filesystem::path input;
  std::filesystem::path output;  // its name says the format
  LayoutParameters layout = {};
  std::filesystem::path reference = {};  // an image or tractogram whose grid the output gets; empty: the input's own
  std::optional<LinearisePlan> linearise = {};
};

struct ConvertOutcome {
  std::filesystem::path output;
  TractogramFormat format;
  ElementType position_type;
  std::uint64_t streamlines = 0;
  std::uint64_t points = 0;
  std::uint64_t points_read = 0;
  std::vector<std::string> lost = {};  // "fa (per point)"
  std::vector<std::string> warnings = {};
};

[[nodiscard]] Result<ConvertOutcome> convert_tractogram(const ConvertRequest& request, RunMachine& machine);

}  // namespace cingulum
