// A field of OME metadata while it is read: its name for messages, so that each refusal is one line with the group and
// the field, and the few shapes that fields have. Called by ome_zarr.cpp and ome_transformation.cpp.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "zarr/array_metadata.hpp"

namespace cingulum::zarr {

// A field of the metadata, for messages: "scan.ome.zarr: multiscales[0].axes[1].name".
class MetadataField {
 public:
  MetadataField(std::string_view group, std::string name) : group_(group), name_(std::move(name)) {}
  [[nodiscard]] MetadataField at(std::string_view member) const {
    return {group_, name_.empty() ? std::string(member) : fmt::format("{}.{}", name_, member)};
  }
  [[nodiscard]] MetadataField at(std::size_t index) const { return {group_, fmt::format("{}[{}]", name_, index)}; }
  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) const {
    return cingulum::fail(ErrorKind::corrupt, "{}: {}: {}", group_, name_,
                          fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  std::string_view group_;
  std::string name_;
};

// Null where there is none, or it is null.
[[nodiscard]] const Json* member_of(const Json& object, const char* name);
// Empty where it is absent and not required.
[[nodiscard]] Result<std::string> text_member(const Json& object, const char* name, const MetadataField& field,
                                              bool required);
// A member that is a list with at least one entry.
[[nodiscard]] Result<const Json*> list_member(const Json& object, const char* name, const MetadataField& field);
// A list of finite numbers.
[[nodiscard]] Result<std::vector<double>> numbers_of(const Json& list, std::size_t count, const MetadataField& field);

}  // namespace cingulum::zarr
