#include "base/result.hpp"

namespace cingulum {

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument: return "invalid argument";
    case ErrorKind::invalid_state: return "invalid state";
    case ErrorKind::not_found: return "not found";
    case ErrorKind::already_exists: return "already exists";
    case ErrorKind::io: return "input or output";
    case ErrorKind::corrupt: return "corrupt";
    case ErrorKind::out_of_memory: return "out of memory";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::device: return "device";
    case ErrorKind::compilation: return "compilation";
    case ErrorKind::interrupted: return "interrupted";
    case ErrorKind::timed_out: return "timed out";
    case ErrorKind::full: return "full";
    case ErrorKind::closed: return "closed";
  }
  return "unknown";
}

Error Error::with_context(std::string_view context) && noexcept {
  try {
    std::string text;
    text.reserve(context.size() + 2 + message_.size());
    text.append(context).append(": ").append(message_);
    message_ = std::move(text);
  } catch (const std::bad_alloc&) {
    // Out of memory: keep the cause, lose the context.
  }
  return std::move(*this);
}

}  // namespace cingulum
