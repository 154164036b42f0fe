// What a verb of `cingulum` is: data (arguments with types, units, ranges and defaults; examples; references) and a
// function. Parsing, help, docs/commands, and shell completion are all made from the data, so a verb says each thing
// once. One file per verb, with a function `Verb devices_verb()`; verbs.cpp lists them. Nothing here touches a device.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/cancel.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {

enum class ArgumentType {
  text,
  file_in,      // must exist (a folder will do: Zarr)
  file_out,     // must not exist, or --force is given; its folder must
  integer,      // std::int64_t
  real,         // double, "2" or with its unit "2mm"
  length,       // Length: "1mm", "0.5vox"; a bare number is in the argument's unit
  angle,        // double, degrees: "45" or "45deg"
  bytes,        // std::uint64_t: "512M", "1.5 GiB"
  key,          // std::uint64_t, all 64 bits: "42", "0xfeed"
  choice,       // one of `choices`
  flag,         // bool, false unless given
  device_list,  // std::vector<std::string>: "cuda:0,cpu"
};

enum class LengthUnit { millimetre, voxel };

// A length as the user gave it; a voxel is the smallest voxel edge of the image in question.
struct Length {
  double value = 0;
  LengthUnit unit = LengthUnit::millimetre;

  [[nodiscard]] double in_mm(double smallest_voxel_edge_mm) const noexcept {
    return unit == LengthUnit::millimetre ? value : value * smallest_voxel_edge_mm;
  }
  friend bool operator==(const Length&, const Length&) = default;
};

// Accepted numbers, in the argument's unit. Both ends are included unless `above` says "more than the minimum".
struct Range {
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  bool above = false;
};

struct Argument {
  std::string name;  // "out" is given as --out; a positional argument is named by its metavar
  ArgumentType type = ArgumentType::text;
  std::string help = {};     // a sentence without the full stop
  std::string metavar = {};  // FILE, N, ...; by type when empty
  std::string unit = {};     // shown for numbers; for a length the unit of a bare number: "mm" (when empty) or "vox"
  Range range = {};
  std::string default_text = {};  // as the user would write it; empty: no value unless given
  std::string default_note = {};  // what help says of a default that the verb itself finds, from other options
  std::vector<std::string> choices = {};
  char letter = 0;  // -o
  bool positional = false;
  bool required = false;
  bool repeatable = false;     // may be given several times; a positional one takes all that remain
  bool takes_several = false;  // of a repeatable option: one mention takes all words up to the next option
};

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
  using Value = std::variant<std::string, std::int64_t, std::uint64_t, double, Length, bool, std::vector<std::string>>;

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

// What a running verb has of the world around it. print() is the result and goes to stdout; talk goes to the log.
class VerbContext {
 public:
  using Output = std::function<void(std::string_view)>;

  VerbContext(const std::vector<Verb>& verbs, const Settings& settings, CommonValues common, Output output,
              std::size_t output_width, Log& log)
      : verbs_(verbs),
        settings_(settings),
        common_(std::move(common)),
        output_(std::move(output)),
        output_width_(output_width),
        log_(log) {}

  [[nodiscard]] const std::vector<Verb>& verbs() const noexcept { return verbs_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  [[nodiscard]] const CommonValues& common() const noexcept { return common_; }
  [[nodiscard]] std::size_t output_width() const noexcept { return output_width_; }
  [[nodiscard]] Log& log() noexcept { return log_; }

  void print(std::string_view text) const { output_(text); }
  template <class... Args>
  void print_format(fmt::format_string<Args...> text, Args&&... args) const {
    output_(fmt::format(text, std::forward<Args>(args)...));
  }

  // Who stops the run and who is told how far it is, where that is not the process: a caller in memory (Python). The
  // observer outlives the context; null: progress is drawn.
  void set_run(CancelToken cancel, ProgressObserver* observer) {
    cancel_ = std::move(cancel);
    observer_ = observer;
  }
  [[nodiscard]] const CancelToken& cancel() const noexcept { return cancel_; }

  // A verb that has done all it had to, and holds much memory or a GPU, calls this last: a process that does nothing
  // else ends here with exit code 0, since the system takes everything back at once where giving it back piece by piece
  // takes tenths of a second. Elsewhere it returns.
  void leave_process() const {
    if (leave_) leave_();
  }
  void set_leave(std::function<void()> leave) { leave_ = std::move(leave); }

  // Progress progress("tracking", total, "seeds", context.progress_options());
  [[nodiscard]] ProgressOptions progress_options() const;
  // --force and CINGULUM_NO_SYNC.
  [[nodiscard]] WriteOptions write_options() const;
  // The pool of --threads threads, made at the first call.
  [[nodiscard]] Result<ThreadPool*> pool();
  // Several contexts of one process work with one pool, which outlives them.
  void share_pool(ThreadPool& pool) { shared_pool_ = &pool; }

 private:
  const std::vector<Verb>& verbs_;
  const Settings& settings_;
  CommonValues common_;
  Output output_;
  std::size_t output_width_;
  Log& log_;
  CancelToken cancel_ = {};
  ProgressObserver* observer_ = nullptr;
  std::function<void()> leave_;
  std::unique_ptr<ThreadPool> pool_;
  ThreadPool* shared_pool_ = nullptr;
};

}  // namespace cingulum
