// Whether a file is still what was written: the hash in its sidecar, the checksums inside it (gzip CRC-32, zip CRC-32),
// and whether it is complete. `cingulum verify` and `cingulum info --verify` call it. It repairs nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"

namespace cingulum {

struct Verification {
  // What was compared and found right: "sidecar XXH3-128", "gzip CRC-32", "zip CRC-32". Empty: there is no checksum.
  std::vector<std::string> checksums;
  // It was read as what it seems to be, and all of it is there. False for contents that are not known.
  bool complete = false;
};

// Whether there is a hash in the sidecar of a file or folder, and it is the one of what is there; fails with kind
// corrupt where it is another.
[[nodiscard]] Result<bool> compare_with_sidecar(const std::filesystem::path& path, const CancelToken& cancel = {});

// Fails with kind corrupt where something is wrong; reads the whole file.
[[nodiscard]] Result<Verification> verify_file(const std::filesystem::path& path, const CancelToken& cancel = {});

}  // namespace cingulum
