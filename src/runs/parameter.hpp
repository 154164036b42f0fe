// One member of a request: a value, and whether whoever made the request gave it. What was not given has no value, or a
// default that the table of the request puts there. Some rules ask which of the two it is: a preset goes before a
// default and behind a value that was given.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cingulum {

template <class T>
class Parameter {
 public:
  using Value = T;

  Parameter() = default;
  Parameter(T value) : value_(std::move(value)), given_(true) {}  // NOLINT(google-explicit-constructor)
  // So that a text literal becomes a given text.
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Parameter>) Parameter(U&& value)
      : value_(std::forward<U>(value)), given_(true) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool given() const noexcept { return given_; }
  [[nodiscard]] bool has() const noexcept { return value_.has_value(); }

  // A flag without a value is off, a list without one is empty; whoever reads any other asks has() first, or knows that
  // the table has a default.
  [[nodiscard]] const T& value() const noexcept {
    static const T empty{};
    if (value_) return *value_;
    assert((may_be_absent) && "a parameter without a value was read");
    return empty;
  }

  // A value that nobody gave: a default, or that of a preset.
  void set_default(T value) {
    value_ = std::move(value);
    given_ = false;
  }
  void reset() noexcept {
    value_.reset();
    given_ = false;
  }

  friend bool operator==(const Parameter&, const Parameter&) = default;

 private:
  static constexpr bool may_be_absent = std::is_same_v<T, bool> || std::is_same_v<T, std::vector<std::string>>;

  std::optional<T> value_;
  bool given_ = false;
};

}  // namespace cingulum
