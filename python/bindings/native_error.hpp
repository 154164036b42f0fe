// How a failure of the library leaves the binding: as a C++ exception that carries the Error, which module.cpp turns
// into the Python exception of its kind (cingulum/_errors.py).
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace cingulum::python {

class NativeError : public std::exception {
 public:
  explicit NativeError(Error error) noexcept : error_(std::move(error)) {}
  [[nodiscard]] const char* what() const noexcept override { return error_.message().c_str(); }
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

// The value of a result, or the exception.
template <class T>
[[nodiscard]] T value_or_throw(Result<T> result) {
  if (!result) throw NativeError(std::move(result.error()));
  return std::move(*result);
}
inline void throw_failure(Status status) {
  if (!status) throw NativeError(std::move(status.error()));
}

}  // namespace cingulum::python
