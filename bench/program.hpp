// How the programs of bench/ end: on a failure, with its text; else with the file of their figures. What they measure
// and how is src/measure's.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/result.hpp"
#include "measure/bench_report.hpp"
#include "measure/child_program.hpp"

namespace cingulum::bench {

[[noreturn]] inline void give_up(std::string_view message) {
  fmt::print(stderr, "{}: {}\n", measure::own_program().filename().string(), message);
  std::exit(1);
}

template <class T>
T require(Result<T> result) {
  if (!result) give_up(result.error().message());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

inline void require(bool holds, std::string_view what) {
  if (!holds) give_up(fmt::format("{} failed", what));
}

inline measure::ScratchFolder scratch_folder(
    const std::filesystem::path& where = std::filesystem::temp_directory_path()) {
  return require(measure::ScratchFolder::create(where));
}

// The frame of every report with the members of this one, as a file. An empty name: no file is wanted.
inline void write_report(const std::string& out, std::string_view bench, const nlohmann::ordered_json& members) {
  if (out.empty()) return;
  nlohmann::ordered_json report = measure::report_frame(bench);
  report.update(members);
  WriteOptions replace;
  replace.force = true;
  require(write_file_atomically(out, json_text(report), replace));
}

}  // namespace cingulum::bench
