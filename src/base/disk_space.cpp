#include "base/disk_space.hpp"

#include <cerrno>

#include "base/quantity.hpp"

namespace cingulum {

bool disk_is_full(int error) {
  return error == ENOSPC || error == EDQUOT;
}

std::optional<std::uint64_t> free_bytes(FileLayer& layer, const std::string& folder) {
  std::uint64_t bytes = 0;
  if (uninterrupted([&] { return layer.free_bytes(folder.c_str(), bytes); }) != 0) return std::nullopt;
  return bytes;
}

tl::unexpected<Error> full_disk(const std::string& shown, const std::string& folder, std::string_view cause,
                                std::string_view at_least, std::uint64_t needed,
                                std::optional<std::uint64_t> available) {
  return fail_file(shown, ErrorKind::io, "writing {}: {}: {}{} needed, {} free in {}; make room or write elsewhere",
                   shown, cause, at_least, format_bytes(needed), available ? format_bytes(*available) : "unknown",
                   folder);
}

Status check_space(FileLayer& layer, const std::string& shown, const std::string& folder,
                   std::uint64_t expected_bytes) {
  if (expected_bytes == 0) return {};
  const auto available = free_bytes(layer, folder);
  if (!available || *available >= expected_bytes) return {};
  return full_disk(shown, folder, "not enough space", "", expected_bytes, available);
}

}  // namespace cingulum
