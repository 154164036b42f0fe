// What the readers of TRK and TCK have in common: streamlines lie behind one another without an index, so that a reader
// walks from each to the next, and remembers where some begin. Every message names the file. A format says where the
// next streamline lies and fills batches. Not for callers of tractogram.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "formats/file_bytes.hpp"
#include "formats/streamline_seeker.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

class WalkedReader : public TractogramReader, public StreamlineSeeker {
 public:
  const TractogramLayout& layout() const final { return layout_; }
  Result<bool> next(TractogramBatch& batch, std::size_t max_points, bool as_float) final;
  Result<std::vector<TractogramGroup>> groups() final { return std::vector<TractogramGroup>{}; }
  // There is no checksum: the streamlines are walked through.
  Status verify() final;
  Result<std::uint64_t> count() override;
  Status seek(std::uint64_t streamline) final;

 protected:
  // `first_place` is where the first streamline lies, in bytes or whatever the format counts in.
  WalkedReader(std::string shown, TractogramFormat format, std::size_t first_place)
      : next_place_(first_place), shown_(std::move(shown)), known_{first_place} {
    layout_.format = format;
  }

  // Where the streamline after this one lies; none where there is no streamline at this place, but the end.
  [[nodiscard]] virtual Result<std::optional<std::size_t>> place_after(std::size_t place,
                                                                       std::uint64_t streamline) const = 0;
  // As next(), from next_place_ on.
  [[nodiscard]] virtual Result<bool> read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float) = 0;

  TractogramLayout layout_;
  std::size_t next_place_;
  std::uint64_t streamlines_read_ = 0;
  bool ended_ = false;

 private:
  // Makes this streamline the next one, or the end where there are fewer; answers which it is.
  [[nodiscard]] Result<std::uint64_t> walk_to(std::uint64_t streamline);
  [[nodiscard]] Result<std::uint64_t> named_walk_to(std::uint64_t streamline);

  std::string shown_;
  // Where every such streamline lies, as far as somebody walked.
  static constexpr std::uint64_t known_step = 8;
  std::vector<std::size_t> known_;
};

template <class Reader>
[[nodiscard]] Result<std::unique_ptr<TractogramReader>> open_walked(std::string shown, FileBytes file) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramReader>> {
    auto reader = std::make_unique<Reader>(shown);
    CGL_TRY(add_file_context(reader->open(std::move(file)), "reading", shown));
    return reader;
  });
}

}  // namespace cingulum
