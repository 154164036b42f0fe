// Quantities as people write and read them: "1.5 GiB", "16", "yes". Settings and the command line parse with
// these, messages and progress print with these. Everything is independent of the locale. What a bare number means and
// which range is accepted is the caller's business.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cingulum {

// "4096", "64K", "1.5 GiB", "2 GB", "10 TiB". K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024; KB, MB, GB, TB are
// powers of 1000. Case does not matter.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

// "0 B", "1023 B", "1.0 KiB", "18.2 GiB": one decimal, powers of 1024.
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

// "12 ms", "3.4 s", "2 min 05 s", "1 h 02 min", "3 d 04 h".
[[nodiscard]] std::string format_duration(std::chrono::duration<double> duration);

// 12345678 -> "12 345 678".
[[nodiscard]] std::string format_count(std::uint64_t count);

// The whole text must be the number; signs, decimal points and exponents as in C, but "inf" and "nan" are refused.
[[nodiscard]] Result<std::int64_t> parse_integer(std::string_view text);
[[nodiscard]] Result<std::uint64_t> parse_key(std::string_view text);  // all 64 bits; decimal or 0x...
[[nodiscard]] Result<double> parse_real(std::string_view text);

// 1, yes, true, on / 0, no, false, off.
[[nodiscard]] Result<bool> parse_flag(std::string_view text);

[[nodiscard]] std::string_view trim(std::string_view text);

}  // namespace cingulum
