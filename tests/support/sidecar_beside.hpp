// A sidecar beside a file that is there already, for tests that begin with such a pair. Outputs get theirs by
// formats/output_sidecar.hpp, as one with the file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "formats/sidecar.hpp"

namespace cingulum::test {

inline Status write_sidecar_beside(const std::filesystem::path& file, nlohmann::ordered_json content) {
  CGL_TRY_ASSIGN(const FileDigest digest, digest_of_file(file));
  set_digest(content, file, digest);
  return write_file_atomically(sidecar_path(file), json_text(content), {.force = true, .sync = false});
}

}  // namespace cingulum::test
