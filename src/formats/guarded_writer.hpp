// What the writers of TRK, TCK and TRX have in common: a call that fails leaves nothing behind and ends the writer,
// running out of memory is such a failure, and every message names the file. A format says what to write.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"
#include "formats/tractogram.hpp"

namespace cingulum {

// The failure with "writing FILE" before it, unless what failed below has said so.
template <class T>
[[nodiscard]] Result<T> name_output(Result<T> result, const std::string& shown) {
  if (result || result.error().message().starts_with("writing ")) return result;
  return add_file_context(std::move(result), "writing", shown);
}

class GuardedWriter : public TractogramWriter {
 public:
  bool makes_positions() const final { return true; }
  Status append(const TractogramBatch& batch) final {
    return guarded([&] { return append_batch(batch); });
  }
  Status add_group(TractogramGroup group) final {
    return guarded([&] { return append_group(group); });
  }
  Status commit() final {
    CGL_TRY(guarded([&] { return write_end(); }));
    ended_ = true;
    return {};
  }

 protected:
  GuardedWriter(std::string shown, TractogramLayout layout) : layout_(std::move(layout)), shown_(std::move(shown)) {}

  [[nodiscard]] virtual Status append_batch(const TractogramBatch& batch) = 0;
  // Formats without groups refuse them.
  [[nodiscard]] virtual Status append_group(const TractogramGroup& group) {
    return fail(ErrorKind::invalid_argument, "{} has no groups ('{}')", tractogram_format_name(layout_.format),
                group.name);
  }
  // Writes the rest of the file and gives it its name.
  [[nodiscard]] virtual Status write_end() = 0;
  // Ends the writer and leaves nothing of the file.
  virtual void discard() noexcept = 0;

  TractogramLayout layout_;

 private:
  template <class Body>
  Status guarded(Body&& body) {
    return catch_out_of_memory([&]() -> Status {
      if (ended_) {
        return fail_file(shown_, ErrorKind::invalid_state,
                         "writing {}: it is complete, or was given up after an earlier failure", shown_);
      }
      Status status = catch_out_of_memory(std::forward<Body>(body));
      if (status) return status;
      ended_ = true;
      discard();
      return name_output(std::move(status), shown_);
    });
  }

  std::string shown_;
  bool ended_ = false;
};

}  // namespace cingulum
