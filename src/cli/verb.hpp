// What a verb of `cingulum` is: data (arguments with types, units, ranges and defaults; examples; references) and a
// function. Parsing, help, docs/commands, and shell completion are all made from the data, so a verb says each thing
// once. One file per verb, with a function `Verb devices_verb()`; verbs.cpp lists them. Nothing here touches a device.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "runs/argument.hpp"
#include "runs/machine.hpp"

namespace cingulum {

// Options that mean the same everywhere. --help, --quiet and --verbose belong to every verb.
enum class CommonOption { device, threads, force, json, progress, seed, quiet, verbose, help };

[[nodiscard]] const Argument& common_argument(CommonOption option);

struct Example {
  std::string command;
  std::string meaning;
};

// Values of a command line that passed all checks. A name that the verb does not declare, or a getter of another type,
// is a mistake in the verb: it ends in an assertion, and answers an empty value where assertions are off.
class ParsedArguments {
 public:
  using Value = ArgumentValue;

  [[nodiscard]] bool given(std::string_view name) const;  // on the command line
  [[nodiscard]] bool has(std::string_view name) const;    // given, or by default

  [[nodiscard]] const std::string& text(std::string_view name) const;  // text, files, choices
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;  // real, angle
  [[nodiscard]] Length length(std::string_view name) const;
  [[nodiscard]] std::uint64_t bytes(std::string_view name) const;
  [[nodiscard]] std::uint64_t key(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& devices(std::string_view name) const;

  // All values of a repeatable argument, in order.
  [[nodiscard]] const std::vector<Value>& values(std::string_view name) const;

  void set(std::string name, std::vector<Value> values, bool given);

 private:
  struct Entry {
    std::vector<Value> values;
    bool given = false;
  };
  template <class T>
  [[nodiscard]] const T& one(std::string_view name) const;

  std::map<std::string, Entry, std::less<>> entries_;
};

class VerbContext;

// The argument that names the action of a verb which has several; Argument::actions says which options each takes.
inline constexpr std::string_view action_argument = "action";

struct Verb {
  std::string name;
  std::string summary;      // one line, no full stop
  std::string description;  // paragraphs, separated by empty lines
  std::vector<Argument> arguments = {};
  std::vector<CommonOption> common = {};  // besides --help, --quiet and --verbose
  std::vector<Example> examples = {};
  std::vector<std::string> references = {};
  bool hidden = false;         // not listed in help; documented nevertheless where asked for by name
  bool needs_settings = true;  // false: runs though the environment holds a malformed setting
  // An error of kind invalid_argument ends with exit code 2, interrupted with 130, any other with 1.
  Status (*run)(const ParsedArguments& arguments, VerbContext& context) = nullptr;
};

// The verb's own arguments, then the common ones it takes, in the order in which help shows them.
[[nodiscard]] std::vector<Argument> all_arguments(const Verb& verb);

// Values of the common options, with the settings of the environment where an option was not given.
struct CommonValues {
  std::vector<std::string> devices = {"auto"};
  int threads = 1;
  bool force = false;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  ProgressStyle progress = ProgressStyle::automatic;
  std::uint64_t seed = 0;
};

// What a running verb has of the world around it: the machine, and where its result goes. print() is the result and
// goes to stdout; talk goes to the log.
class VerbContext : public RunMachine {
 public:
  using Output = std::function<void(std::string_view)>;

  VerbContext(const std::vector<Verb>& verbs, const Settings& settings, CommonValues common, Output output,
              std::size_t output_width, Log& log)
      : RunMachine(settings,
                   {.threads = common.threads,
                    .force = common.force,
                    .progress = common.quiet ? ProgressStyle::silent : common.progress},
                   log),
        verbs_(verbs),
        common_(std::move(common)),
        output_(std::move(output)),
        output_width_(output_width) {}

  [[nodiscard]] const std::vector<Verb>& verbs() const noexcept { return verbs_; }
  [[nodiscard]] const CommonValues& common() const noexcept { return common_; }
  [[nodiscard]] std::size_t output_width() const noexcept { return output_width_; }
  // The one device of `what`, which cannot use several.
  [[nodiscard]] Result<std::string> only_device(std::string_view what) const {
    if (common_.devices.size() == 1) return common_.devices.front();
    return fail(ErrorKind::invalid_argument, "{}: one device at a time, {} given", what, common_.devices.size());
  }

  void print(std::string_view text) const { output_(text); }
  template <class... Args>
  void print_format(fmt::format_string<Args...> text, Args&&... args) const {
    output_(fmt::format(text, std::forward<Args>(args)...));
  }

  // A verb that has done all it had to, and holds much memory or a GPU, calls this last: a process that does nothing
  // else ends here with exit code 0, since the system takes everything back at once where giving it back piece by piece
  // takes tenths of a second. Elsewhere it returns.
  void leave_process() const {
    if (leave_) leave_();
  }
  void set_leave(std::function<void()> leave) { leave_ = std::move(leave); }

 private:
  const std::vector<Verb>& verbs_;
  CommonValues common_;
  Output output_;
  std::size_t output_width_;
  std::function<void()> leave_;
};

}  // namespace cingulum
