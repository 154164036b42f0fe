#include "cli/verb.hpp"

#include <array>
#include <cassert>

namespace cingulum {
namespace {

// Declared once; the order is that of CommonOption.
const std::array<Argument, 9>& common_arguments() {
  static const std::array<Argument, 9> list = {{
      {.name = "device",
       .type = ArgumentType::device_list,
       .help = "where to compute: auto, cpu, cuda, cuda:N, webgpu, metal, or several separated by commas; 'cingulum "
               "devices' lists them (setting CINGULUM_DEVICE)",
       .metavar = "DEVICE",
       .default_text = "auto"},
      {.name = "threads",
       .type = ArgumentType::integer,
       .help = "threads of the CPU; all processors unless given here or in CINGULUM_THREADS",
       .metavar = "N",
       .range = {.minimum = 1, .maximum = max_thread_count}},
      {.name = "force", .type = ArgumentType::flag, .help = "replace outputs that exist; without it they are refused"},
      {.name = "json", .type = ArgumentType::flag, .help = "print the result for programs, as JSON"},
      {.name = "progress",
       .type = ArgumentType::choice,
       .help = "how progress is shown on stderr: a bar on a terminal and lines elsewhere (auto), one JSON object per "
               "line (json), or one of the others",
       .metavar = "STYLE",
       .default_text = "auto",
       .choices = {"auto", "bar", "lines", "json", "none"}},
      {.name = "seed",
       .type = ArgumentType::key,
       .help = "key of the random numbers; the same key gives the same result on every device",
       .metavar = "KEY",
       .default_text = "0"},
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

ProgressOptions VerbContext::progress_options() const {
  ProgressOptions options;
  options.style = common_.quiet ? ProgressStyle::silent : common_.progress;
  options.stream = &log_.stream();
  options.observer = observer_;
  return options;
}

WriteOptions VerbContext::write_options() const {
  WriteOptions options;
  options.force = common_.force;
  // A malformed setting was refused before the verb ran.
  options.sync = !settings_.no_sync().value_or(false);
  options.cancel = cancel_;
  return options;
}

Result<ThreadPool*> VerbContext::pool() {
  if (shared_pool_ != nullptr) return shared_pool_;
  if (!pool_) {
    CGL_TRY_ASSIGN(pool_, ThreadPool::create(common_.threads));
  }
  return pool_.get();
}

}  // namespace cingulum
