// What the C++ library of Debian's emscripten lacks of C++20 and the library uses. Put before every file that is
// compiled for browsers (cmake/BrowserHost.cmake); nobody includes it.
#pragma once

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>

namespace std {

#if !defined(__cpp_lib_bit_cast)
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
#endif

// By strtod, which rounds correctly, without what from_chars does not take: blanks, a plus sign, hexadecimal.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const char* at = first;
  if (at != last && *at == '-') ++at;
  const bool begins =
      at != last && ((*at >= '0' && *at <= '9') || *at == '.' || *at == 'i' || *at == 'I' || *at == 'n' || *at == 'N');
  const bool hexadecimal = last - at > 1 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
  if (!begins || hexadecimal) return {first, errc::invalid_argument};
  const string text(first, last);
  char* end = nullptr;
  errno = 0;
  const double number = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  const char* const stop = first + (end - text.c_str());
  if (errno == ERANGE) return {stop, errc::result_out_of_range};
  value = number;
  return {stop, errc()};
}

#if !defined(__cpp_lib_smart_ptr_for_overwrite)
template <class T>
unique_ptr<T> make_unique_for_overwrite(size_t count) {
  return unique_ptr<T>(new remove_extent_t<T>[count]);
}
#endif

}  // namespace std
