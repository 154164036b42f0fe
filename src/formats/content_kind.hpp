// What a file is, by its content: `cingulum info` and `cingulum verify` ask before they choose a reader. Names are used
// only where content cannot tell two tables of numbers apart.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.hpp"

namespace cingulum {

enum class ContentKind {
  nifti,         // also the headers of pairs and ANALYZE, which its reader refuses by name
  tractogram,    // TRK, TCK, TRX, TRX folder
  b_values,      // one row or column of numbers
  b_vectors,     // three rows or columns
  mrtrix_table,  // four columns
  mrtrix_image,  // .mif, .mih: known, not read
  json,
  gzip,    // something else in gzip
  folder,  // no TRX folder
  unknown,
};

// Looks at the first bytes (behind gzip too), at most 64 KB of a text.
[[nodiscard]] Result<ContentKind> find_content_kind(const std::filesystem::path& path);

// "NIfTI image", "b-values", ...
[[nodiscard]] std::string_view content_kind_name(ContentKind kind);

}  // namespace cingulum
