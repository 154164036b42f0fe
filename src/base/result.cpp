#include "base/result.hpp"

#include <vector>

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

struct Error::Details {
  // Where a name stands in the message.
  struct Mention {
    std::size_t begin = 0;
    std::size_t length = 0;
  };

  std::string argument;
  std::string file;
  std::vector<Mention> mentions;  // in order
};

namespace {

// Takes the marks out of `text`, in place, and calls `found` with where names stand in what is left.
template <class Found>
void remove_marks(std::string& text, Found&& found) {
  std::size_t from = 0;
  for (ArgumentMark mark = find_argument_mark(text); mark.begin != std::string_view::npos;
       mark = find_argument_mark(text, from)) {
    const std::size_t length = mark.name.size();
    text.erase(mark.begin, 1);
    text.erase(mark.begin + length, 1);
    found(mark.begin, length);
    from = mark.begin + length;
  }
}

}  // namespace

// The details are shared by copies of an error and never changed: a change makes new ones, or none when memory is out.
template <class Change>
void Error::change_details(Change&& change) noexcept {
  try {
    auto changed = details_ ? std::make_shared<Details>(*details_) : std::make_shared<Details>();
    change(*changed);
    details_ = std::move(changed);
  } catch (const std::bad_alloc&) {
    // Out of memory: the message is kept, the data are lost.
  }
}

void Error::take_marks() noexcept {
  std::vector<Details::Mention> mentions;
  bool complete = true;
  remove_marks(message_, [&](std::size_t begin, std::size_t length) {
    try {
      mentions.push_back({begin, length});
    } catch (const std::bad_alloc&) {
      complete = false;
    }
  });
  if (complete && !mentions.empty()) change_details([&](Details& details) { details.mentions = std::move(mentions); });
}

std::string Error::message_for(ArgumentNaming naming) const {
  if (!details_) return message_;
  std::string text;
  std::size_t done = 0;
  for (const Details::Mention& mention : details_->mentions) {
    text.append(message_, done, mention.begin - done);
    text.append(naming(std::string_view(message_).substr(mention.begin, mention.length)));
    done = mention.begin + mention.length;
  }
  return text.append(message_, done);
}

std::string Error::marked_message() const {
  return message_for([](std::string_view name) { return fmt::format("{}", argument_name(name)); });
}

std::string_view Error::argument() const noexcept {
  return details_ ? std::string_view(details_->argument) : std::string_view{};
}

std::string_view Error::file() const noexcept {
  return details_ ? std::string_view(details_->file) : std::string_view{};
}

Error Error::with_context(std::string_view context) && noexcept {
  try {
    std::string text;
    text.reserve(context.size() + 2 + message_.size());
    text.append(context);
    std::vector<Details::Mention> mentions;
    remove_marks(text, [&](std::size_t begin, std::size_t length) { mentions.push_back({begin, length}); });
    text.append(": ");
    const std::size_t shift = text.size();
    text.append(message_);
    if (details_ || !mentions.empty()) {
      auto changed = details_ ? std::make_shared<Details>(*details_) : std::make_shared<Details>();
      for (Details::Mention mention : changed->mentions) mentions.push_back({mention.begin + shift, mention.length});
      changed->mentions = std::move(mentions);
      details_ = std::move(changed);
    }
    message_ = std::move(text);
  } catch (const std::bad_alloc&) {
    // Out of memory: keep the cause, lose the context.
  }
  return std::move(*this);
}

Error Error::with_argument(std::string_view name) && noexcept {
  if (argument().empty()) change_details([&](Details& details) { details.argument = name; });
  return std::move(*this);
}

Error Error::with_file(std::string_view path) && noexcept {
  if (file().empty()) change_details([&](Details& details) { details.file = path; });
  return std::move(*this);
}

}  // namespace cingulum
