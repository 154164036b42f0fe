// Result: how every fallible function of Cingulum answers. A failure is a value, an Error with a kind (for programs)
// and a message (for people) that collects context on its way up: "reading a.nii.gz: header: 44 is not a size".
// Asserts are for our own mistakes and cannot be reached by input. Exceptions are not used across functions, with one
// exception: std::bad_alloc, which catch_out_of_memory() turns into an Error at the edge of a parse, plan or write.
#pragma once

#include <fmt/format.h>

#include <new>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

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

class Error {
 public:
  Error(ErrorKind kind, std::string message) noexcept : kind_(kind), message_(std::move(message)) {}

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

  // Puts "context: " before the message. Under memory exhaustion the message stays as it is rather than being lost.
  [[nodiscard]] Error with_context(std::string_view context) && noexcept;

 private:
  ErrorKind kind_;
  std::string message_;
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
