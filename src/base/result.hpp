// Result: how every fallible function of Cingulum answers. A failure is a value, an Error with a kind (for programs)
// and a message (for people) that collects context on its way up: "reading a.nii.gz: header: 44 is not a size". Where
// an argument or a file is at fault the Error carries its name as data, too, so that an edge can word it in its own
// way. Asserts are for our own mistakes and cannot be reached by input. Exceptions are not used across functions, with
// one exception: std::bad_alloc, which catch_out_of_memory() turns into an Error at the edge of a parse, plan or write.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "base/argument_name.hpp"

namespace cingulum {

enum class ErrorKind {
  invalid_argument,  // a value that the caller or the user gave is outside what is accepted
  invalid_state,     // the operation is not allowed now
  not_found,
  already_exists,
  io,             // a file could not be read or written
  corrupt,        // a file or message is damaged or not what it says it is
  out_of_memory,  // host or device memory
  unavailable,    // a device, library or capability is not there
  device,         // a device or its driver reported a failure
  compilation,    // a kernel does not compile
  interrupted,    // the user asked to stop
  timed_out,      // what was waited for did not come in the time given
  full,           // a bounded queue or table has no room
  closed,         // the queue or peer has ended; nothing will come any more
};

[[nodiscard]] std::string_view error_kind_name(ErrorKind kind);

// Nothing here but message_for, marked_message and copying allocates in a way that can fail: under memory exhaustion
// the message stays, and what would have been added to it is lost.
class Error {
 public:
  // `message` may hold marks of argument_name().
  Error(ErrorKind kind, std::string message) noexcept : kind_(kind), message_(std::move(message)) {
    if (message_.find(argument_mark_begin) != std::string::npos) take_marks();
  }

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  // Arguments stand in it by their neutral names: `max_angle`.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  // The message as an edge words it.
  [[nodiscard]] std::string message_for(ArgumentNaming naming) const;
  // With the marks, to become a part of another text: fail(kind, "{}; so it ends", error) does the same.
  [[nodiscard]] std::string marked_message() const;

  // The neutral name of the argument that was refused; empty where it was none.
  [[nodiscard]] std::string_view argument() const noexcept;
  // The path of the file at fault, as it was given; empty where it was none.
  [[nodiscard]] std::string_view file() const noexcept;

  // Puts "context: " before the message.
  [[nodiscard]] Error with_context(std::string_view context) && noexcept;
  // The first that is set stays: the place nearest to the fault knows best.
  [[nodiscard]] Error with_argument(std::string_view name) && noexcept;
  [[nodiscard]] Error with_file(std::string_view path) && noexcept;

 private:
  struct Details;

  void take_marks() noexcept;
  template <class Change>
  void change_details(Change&& change) noexcept;

  ErrorKind kind_;
  std::string message_;
  std::shared_ptr<const Details> details_;  // null: no argument, no file, no name in the message
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  return tl::make_unexpected(Error(kind, fmt::format(text, std::forward<Args>(args)...)));
}

// Adds context to a failure and passes success through: return add_context(read(path), "reading {}", path);
template <class T, class... Args>
[[nodiscard]] Result<T> add_context(Result<T> result, fmt::format_string<Args...> text, Args&&... args) {
  if (result) return result;
  return tl::make_unexpected(std::move(result.error()).with_context(fmt::format(text, std::forward<Args>(args)...)));
}

// A refused argument: kind invalid_argument, and `name` as data. The text mentions it where it reads best, mostly
// first: fail_argument("max_angle", "{} {} degrees: accepted is at most 90", argument_name("max_angle"), value);
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail_argument(std::string_view name, fmt::format_string<Args...> text,
                                                  Args&&... args) {
  return tl::make_unexpected(
      Error(ErrorKind::invalid_argument, fmt::format(text, std::forward<Args>(args)...)).with_argument(name));
}

// A failure with a file: its path as data, and in the text where the text has it.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail_file(std::string_view path, ErrorKind kind, fmt::format_string<Args...> text,
                                              Args&&... args) {
  return tl::make_unexpected(Error(kind, fmt::format(text, std::forward<Args>(args)...)).with_file(path));
}

// Says which file (or argument) a failure is about and leaves its message as it is:
// return add_context(add_file(parse(bytes), path), "reading {}", path);
template <class T>
[[nodiscard]] Result<T> add_file(Result<T> result, std::string_view path) {
  if (result) return result;
  return tl::make_unexpected(std::move(result.error()).with_file(path));
}
// Both at once, of what is done with a file: "reading a.nii: ...".
template <class T>
[[nodiscard]] Result<T> add_file_context(Result<T> result, std::string_view doing, std::string_view path) {
  if (result) return result;
  return tl::make_unexpected(std::move(result.error()).with_file(path).with_context(fmt::format("{} {}", doing, path)));
}
template <class T>
[[nodiscard]] Result<T> add_argument(Result<T> result, std::string_view name) {
  if (result) return result;
  return tl::make_unexpected(std::move(result.error()).with_argument(name));
}

// Runs `body` (which returns a Result) and answers std::bad_alloc with ErrorKind::out_of_memory.
template <class Body>
[[nodiscard]] std::invoke_result_t<Body> catch_out_of_memory(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    // The text fits the string's own storage: reporting exhaustion allocates nothing.
    return tl::make_unexpected(Error(ErrorKind::out_of_memory, "out of memory"));
  }
}

}  // namespace cingulum

// Inside another text an error keeps its marks, so that the names in it are spelled by the edge.
template <>
struct fmt::formatter<cingulum::Error> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const cingulum::Error& error, Context& context) const {
    return fmt::format_to(context.out(), "{}", error.marked_message());
  }
};

#define CGL_CONCAT_INNER(a, b) a##b
#define CGL_CONCAT(a, b) CGL_CONCAT_INNER(a, b)

// Returns the failure of `expression` (a Status) from the enclosing function, or goes on.
#define CGL_TRY(expression)                                                                                     \
  do {                                                                                                          \
    if (auto cgl_status = (expression); !cgl_status) return tl::make_unexpected(std::move(cgl_status.error())); \
  } while (false)

// CGL_TRY_ASSIGN(auto value, expression): the same for a Result<T>; `value` receives the T.
#define CGL_TRY_ASSIGN(declaration, expression) \
  CGL_TRY_ASSIGN_INNER(CGL_CONCAT(cgl_result_, __LINE__), declaration, expression)
#define CGL_TRY_ASSIGN_INNER(result, declaration, expression)         \
  auto result = (expression);                                         \
  if (!result) return tl::make_unexpected(std::move(result.error())); \
  declaration = std::move(*result)
