// What every fuzz target includes. A target is one file fuzz/NAME.cpp with LLVMFuzzerTestOneInput: it gives the bytes
// to one parser, and requires that whatever is accepted reads the same after it was written again. The
// program fuzz_NAME comes from that file and replay_main.cpp, which also watches allocations and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cingulum::fuzz {

inline std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process, which the main program notices and keeps the input of.
inline void require(bool holds, std::string_view what, std::string_view more = "") {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(), static_cast<int>(more.size()),
               more.data());
  std::abort();
}

// For a Result that must hold a value.
template <class Result>
auto expect(Result&& result, std::string_view what) {
  if (!result) require(false, what, result.error().message());
  return std::move(*result);
}

}  // namespace cingulum::fuzz
