// Settings from the environment: the CINGULUM_* variables, declared as data in one list from which `cingulum settings`
// and the documentation are made. Read once at the start of the program and handed down; nobody else calls getenv.
// Command-line options win over settings; that is the command line's business. Which devices exist is not known here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"

namespace cingulum {

enum class Setting {
  device,
  threads,
  log,
  cache_dir,
  cache_limit,
  memory_limit,
  no_sync,
  cuda_library,
  nvrtc_library,
  nvml_library,
  wgpu_library,
  cufile_library,
  nvcomp_library,
};

struct SettingInfo {
  Setting id;
  std::string_view name;
  std::string_view meaning;  // "{}" in it stands for `argument`
  std::string_view accepted;
  std::string_view default_text;
  std::string_view argument = {};  // that comes before the setting where a caller has given it

  // The meaning as marked text (base/argument_name.hpp).
  [[nodiscard]] std::string marked_meaning() const;
};

[[nodiscard]] std::span<const SettingInfo> setting_list();
[[nodiscard]] const SettingInfo& setting_info(Setting setting);

// "cuda:0, webgpu" -> {"cuda:0", "webgpu"}: names with an optional number, separated by commas; one may be named twice.
// Whether such a device is there is for the device registry to say.
[[nodiscard]] Result<std::vector<std::string>> parse_device_list(std::string_view text);

// A value that is empty counts as not set. Getters fail with the name of the setting, its value and what is accepted.
class Settings {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  [[nodiscard]] static Result<Settings> from_environment();
  // For tests: exactly these variables, HOME, XDG_CACHE_HOME and XDG_RUNTIME_DIR included.
  [[nodiscard]] static Settings from_variables(Variables variables) { return Settings(std::move(variables)); }

  [[nodiscard]] Result<std::vector<std::string>> devices() const;  // default {"auto"}
  [[nodiscard]] Result<int> threads() const;                       // default: the processors this process may use
  [[nodiscard]] Result<LogLevel> log_level() const;
  [[nodiscard]] Result<std::filesystem::path> cache_dir() const;
  // $XDG_RUNTIME_DIR, where programs show each other what lasts as long as they run; empty when not set or relative.
  [[nodiscard]] std::string_view runtime_dir() const;
  [[nodiscard]] Result<std::uint64_t> cache_limit_bytes() const;
  [[nodiscard]] Result<std::optional<std::uint64_t>> memory_limit_bytes() const;  // per device; none = all there is
  [[nodiscard]] Result<bool> no_sync() const;
  // The file to load instead of searching, for the settings *_library.
  [[nodiscard]] Result<std::optional<std::filesystem::path>> library(Setting which) const;

  // The value as it was given, when it was.
  [[nodiscard]] std::optional<std::string_view> given(Setting setting) const;

  // Every setting parses; otherwise the first that does not.
  [[nodiscard]] Status check() const;

  // One text for each CINGULUM_* variable that is not a setting, with the nearest name.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  explicit Settings(Variables variables) : variables_(std::move(variables)) {}
  [[nodiscard]] std::optional<std::string_view> variable(std::string_view name) const;

  Variables variables_;
};

// The processors this process may use (its affinity mask), at least 1.
[[nodiscard]] int default_thread_count() noexcept;

constexpr int max_thread_count = 4096;

}  // namespace cingulum
