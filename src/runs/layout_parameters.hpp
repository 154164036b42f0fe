// How a tractogram is stored (positions of float16 or float64, deflated), for `track`, `convert` and `merge`, and
// whether it may be written.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "formats/tractogram.hpp"
#include "runs/argument.hpp"
#include "runs/request_table.hpp"

namespace cingulum {

struct LayoutParameters {
  Parameter<bool> float16;
  Parameter<bool> float64;
  Parameter<bool> deflate;
};

// In the order of the members.
[[nodiscard]] std::vector<Argument> layout_arguments();

template <class Request>
void add_layout_parameters(std::vector<RequestField<Request>>& rows) {
  const std::vector<Argument> arguments = layout_arguments();
  rows.push_back({&Request::float16, Phase::output, arguments[0]});
  rows.push_back({&Request::float64, Phase::output, arguments[1]});
  rows.push_back({&Request::deflate, Phase::output, arguments[2]});
}

// Refuses what the format has no place for, and what excludes each other.
[[nodiscard]] Status check_layout_options(const LayoutParameters& parameters, TractogramFormat format,
                                          const std::filesystem::path& out);

// Before the work: whether the file and its sidecar may be written.
[[nodiscard]] Status check_tractogram_output(const std::filesystem::path& path, TractogramFormat format,
                                             const WriteOptions& options);

// As asked for; none where it was not.
[[nodiscard]] std::optional<ElementType> asked_position_type(const LayoutParameters& parameters);

}  // namespace cingulum
