// Access to the streamlines of a file in any order; every reader of tractogram.hpp is a seeker, too. For callers that
// read some here and some there (view/shown_lines.hpp); a caller that reads from front to back needs none of it, and
// has checksums compared on the way, which jumps leave out.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

class StreamlineSeeker {
 public:
  virtual ~StreamlineSeeker() = default;
  // Counts streamlines in the file itself, not by its header. TRK and TCK may have to be walked through for it.
  [[nodiscard]] virtual Result<std::uint64_t> count() = 0;
  // The next batch begins with this one; with the number of streamlines there is no next batch. After a jump next()
  // compares no checksums.
  [[nodiscard]] virtual Status seek(std::uint64_t streamline) = 0;
};

// The seeker of the reader's file; lives as long as the reader.
[[nodiscard]] inline StreamlineSeeker& seeker_of(TractogramReader& reader) {
  return dynamic_cast<StreamlineSeeker&>(reader);
}

}  // namespace cingulum
