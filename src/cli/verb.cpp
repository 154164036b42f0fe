#include "cli/verb.hpp"

#include <array>
#include <cassert>

namespace cingulum {
namespace {

// Declared once; the order is that of CommonOption.
const std::array<Argument, 9>& common_arguments() {
  static const std::array<Argument, 9> list = {{
      device_argument(),
      threads_argument(),
      force_argument(),
      {.name = "json", .type = ArgumentType::flag, .help = "print the result for programs, as JSON"},
      {.name = "progress",
       .type = ArgumentType::choice,
       .help = "how progress is shown on stderr: a bar on a terminal and lines elsewhere (auto), one JSON object per "
               "line (json), or one of the others",
       .metavar = "STYLE",
       .default_text = "auto",
       .choices = {"auto", "bar", "lines", "json", "none"}},
      seed_argument(),
      {.name = "quiet", .type = ArgumentType::flag, .help = "say nothing on stderr but errors", .letter = 'q'},
      {.name = "verbose", .type = ArgumentType::flag, .help = "say more on stderr", .letter = 'v'},
      {.name = "help", .type = ArgumentType::flag, .help = "print this help", .letter = 'h'},
  }};
  return list;
}

}  // namespace

const Argument& common_argument(CommonOption option) {
  return common_arguments()[static_cast<std::size_t>(option)];
}

std::vector<Argument> all_arguments(const Verb& verb) {
  std::vector<Argument> arguments = verb.arguments;
  for (const CommonOption option : verb.common) arguments.push_back(common_argument(option));
  for (const CommonOption option : {CommonOption::quiet, CommonOption::verbose, CommonOption::help}) {
    arguments.push_back(common_argument(option));
  }
  return arguments;
}

bool ParsedArguments::given(std::string_view name) const {
  const auto entry = entries_.find(name);
  return entry != entries_.end() && entry->second.given;
}

bool ParsedArguments::has(std::string_view name) const {
  const auto entry = entries_.find(name);
  return entry != entries_.end() && !entry->second.values.empty();
}

template <class T>
const T& ParsedArguments::one(std::string_view name) const {
  static const T empty{};
  const auto entry = entries_.find(name);
  if (entry != entries_.end() && !entry->second.values.empty()) {
    if (const T* value = std::get_if<T>(&entry->second.values.front())) return *value;
  }
  assert(!"the verb asks for an argument that it does not declare, of another type, or without a value");
  return empty;
}

const std::string& ParsedArguments::text(std::string_view name) const {
  return one<std::string>(name);
}

std::vector<std::string> ParsedArguments::texts(std::string_view name) const {
  std::vector<std::string> texts;
  for (const Value& value : values(name)) {
    if (const auto* text = std::get_if<std::string>(&value)) texts.push_back(*text);
  }
  return texts;
}

std::int64_t ParsedArguments::integer(std::string_view name) const {
  return one<std::int64_t>(name);
}
double ParsedArguments::real(std::string_view name) const {
  return one<double>(name);
}
Length ParsedArguments::length(std::string_view name) const {
  return one<Length>(name);
}
std::uint64_t ParsedArguments::bytes(std::string_view name) const {
  return one<std::uint64_t>(name);
}
std::uint64_t ParsedArguments::key(std::string_view name) const {
  return one<std::uint64_t>(name);
}
bool ParsedArguments::flag(std::string_view name) const {
  return one<bool>(name);
}

const std::vector<std::string>& ParsedArguments::devices(std::string_view name) const {
  return one<std::vector<std::string>>(name);
}

const std::vector<ParsedArguments::Value>& ParsedArguments::values(std::string_view name) const {
  static const std::vector<Value> none;
  const auto entry = entries_.find(name);
  return entry != entries_.end() ? entry->second.values : none;
}

void ParsedArguments::set(std::string name, std::vector<Value> values, bool given) {
  entries_.insert_or_assign(std::move(name), Entry{.values = std::move(values), .given = given});
}

}  // namespace cingulum
