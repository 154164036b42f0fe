// How the programs of bench/ begin and end: with the options that were typed; on a failure with its text, else with the
// file of their figures. What they measure and how is src/measure's.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

// What may be typed behind a program: options with a value, which becomes a text or a number, and flags. Anything else
// ends the program with its usage.
class ProgramOptions {
 public:
  // `value` is what the usage calls it. False from `take`: it cannot be this one.
  ProgramOptions& add_with(std::string_view name, std::string_view value, std::function<bool(const char*)> take) {
    options_.push_back({name, value, std::move(take)});
    return *this;
  }
  template <class Text>
  requires(!std::is_arithmetic_v<Text>) ProgramOptions& add(std::string_view name, std::string_view value, Text& into) {
    return add_with(name, value, [&into](const char* text) {
      into = text;
      return true;
    });
  }
  // What is smaller than `least` becomes it.
  template <class Number>
  requires std::is_arithmetic_v<Number> ProgramOptions& add(std::string_view name, std::string_view value, Number& into,
                                                            Number least = std::numeric_limits<Number>::lowest()) {
    return add_with(name, value, [&into, least](const char* text) {
      if constexpr (std::is_floating_point_v<Number>) {
        into = static_cast<Number>(std::strtod(text, nullptr));
      } else if constexpr (std::is_signed_v<Number>) {
        into = static_cast<Number>(std::strtoll(text, nullptr, 10));
      } else {
        into = static_cast<Number>(std::strtoull(text, nullptr, 10));
      }
      into = std::max(least, into);
      return true;
    });
  }
  ProgramOptions& add_flag(std::string_view name, bool& into, bool becomes = true) {
    return add_with(name, "", [&into, becomes](const char*) {
      into = becomes;
      return true;
    });
  }

  void read(int count, char** words) const {
    for (int i = 1; i < count; ++i) {
      const auto found =
          std::find_if(options_.begin(), options_.end(), [&](const Option& option) { return option.name == words[i]; });
      if (found == options_.end()) refuse();
      const bool is_flag = found->value.empty();
      if (!is_flag && ++i == count) refuse();
      if (!found->take(words[i])) refuse();
    }
  }

 private:
  struct Option {
    std::string_view name;
    std::string_view value;  // empty: a flag
    std::function<bool(const char*)> take;
  };

  [[noreturn]] void refuse() const {
    std::string usage = "usage: " + measure::own_program().filename().string();
    for (const Option& option : options_) {
      usage += fmt::format(" [{}{}{}]", option.name, option.value.empty() ? "" : " ", option.value);
    }
    fmt::print(stderr, "{}\n", usage);
    std::exit(2);
  }

  std::vector<Option> options_;
};

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
