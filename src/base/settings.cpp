#include "base/settings.hpp"

#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <array>
#include <thread>

#include "base/edit_distance.hpp"
#include "base/quantity.hpp"

namespace cingulum {
namespace {

constexpr std::string_view name_prefix = "CINGULUM_";
constexpr std::string_view size_accepted = "a size in bytes, with K, M, G, T (or KiB, KB, ...) if wanted, such as 2G";
constexpr std::string_view library_accepted = "the path of a shared library";

constexpr std::array<SettingInfo, 13> list = {{
    {Setting::device, "CINGULUM_DEVICE", "devices to use when {} is not given",
     "auto, cpu, cuda, cuda:N, webgpu, metal, or several separated by commas", "auto", "device"},
    {Setting::threads, "CINGULUM_THREADS", "threads of the CPU to use when {} is not given",
     "a whole number from 1 to 4096", "all processors", "threads"},
    {Setting::log, "CINGULUM_LOG", "how much is said on stderr", "error, warning, info or debug", "info"},
    {Setting::cache_dir, "CINGULUM_CACHE_DIR", "folder of the cache of compiled kernels", "a folder",
     "$XDG_CACHE_HOME/cingulum or $HOME/.cache/cingulum"},
    {Setting::cache_limit, "CINGULUM_CACHE_LIMIT", "size above which the cache drops what was used least recently",
     size_accepted, "1 GiB"},
    {Setting::memory_limit, "CINGULUM_MEMORY_LIMIT", "memory that may be used on each device", size_accepted,
     "all there is"},
    {Setting::no_sync, "CINGULUM_NO_SYNC", "do not wait until outputs are on the disk (faster; for scratch files)",
     "0 or 1", "0"},
    {Setting::cuda_library, "CINGULUM_CUDA_LIBRARY", "the CUDA driver library to load instead of searching for it",
     library_accepted, ""},
    {Setting::nvrtc_library, "CINGULUM_NVRTC_LIBRARY", "the CUDA run-time compiler to load instead of searching for it",
     library_accepted, ""},
    {Setting::nvml_library, "CINGULUM_NVML_LIBRARY",
     "the NVIDIA management library to load instead of searching for it", library_accepted, ""},
    {Setting::wgpu_library, "CINGULUM_WGPU_LIBRARY", "the wgpu-native library to load instead of searching for it",
     library_accepted, ""},
    {Setting::cufile_library, "CINGULUM_CUFILE_LIBRARY",
     "the cuFile library (GPUDirect Storage) to load instead of searching for it", library_accepted, ""},
    {Setting::nvcomp_library, "CINGULUM_NVCOMP_LIBRARY", "the nvCOMP library to load instead of searching for it",
     library_accepted, ""},
}};

constexpr std::uint64_t default_cache_limit_bytes = std::uint64_t{1} << 30U;

constexpr bool list_is_in_order() {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (static_cast<std::size_t>(list[i].id) != i) return false;
  }
  return true;
}
static_assert(list_is_in_order());

tl::unexpected<Error> malformed(Setting setting, std::string_view value) {
  const SettingInfo& info = setting_info(setting);
  return fail(ErrorKind::invalid_argument, "setting {}='{}': accepted is {}", info.name, value, info.accepted);
}

bool is_device_name(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (kind.empty() || !std::all_of(kind.begin(), kind.end(), lower)) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view number = name.substr(colon + 1);
  return !number.empty() && number.size() <= 4 && std::all_of(number.begin(), number.end(), digit);
}

}  // namespace

std::string SettingInfo::marked_meaning() const {
  return argument.empty() ? std::string(meaning) : fmt::format(fmt::runtime(meaning), argument_name(argument));
}

std::span<const SettingInfo> setting_list() {
  return list;
}

const SettingInfo& setting_info(Setting setting) {
  return list[static_cast<std::size_t>(setting)];
}

int default_thread_count() noexcept {
  unsigned available = std::thread::hardware_concurrency();
#if defined(__linux__)
  // The library counts the processors of the machine.
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) available = static_cast<unsigned>(CPU_COUNT(&allowed));
#endif
  return static_cast<int>(std::clamp(available, 1U, static_cast<unsigned>(max_thread_count)));
}

Result<std::vector<std::string>> parse_device_list(std::string_view text) {
  std::vector<std::string> names;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = trim(rest.substr(0, comma));
    if (!is_device_name(name)) {
      return fail(ErrorKind::invalid_argument, "'{}' is not a list of devices; accepted is {}", text,
                  setting_info(Setting::device).accepted);
    }
    names.emplace_back(name);
    if (comma == std::string_view::npos) return names;
    rest.remove_prefix(comma + 1);
  }
}

Result<Settings> Settings::from_environment() {
  return catch_out_of_memory([]() -> Result<Settings> {
    Variables variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const std::size_t equals = text.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = text.substr(0, equals);
      if (name.starts_with(name_prefix) || name == "HOME" || name == "XDG_CACHE_HOME" || name == "XDG_RUNTIME_DIR") {
        variables.emplace_back(name, text.substr(equals + 1));
      }
    }
    return Settings(std::move(variables));
  });
}

std::optional<std::string_view> Settings::variable(std::string_view name) const {
  for (const auto& [key, value] : variables_) {
    if (key == name && !value.empty()) return value;
  }
  return std::nullopt;
}

std::optional<std::string_view> Settings::given(Setting setting) const {
  return variable(setting_info(setting).name);
}

Result<std::vector<std::string>> Settings::devices() const {
  return catch_out_of_memory([&]() -> Result<std::vector<std::string>> {
    return add_context(parse_device_list(given(Setting::device).value_or("auto")), "setting CINGULUM_DEVICE");
  });
}

Result<int> Settings::threads() const {
  return catch_out_of_memory([&]() -> Result<int> {
    const auto text = given(Setting::threads);
    if (!text) return default_thread_count();
    const Result<std::int64_t> value = parse_integer(trim(*text));
    if (!value || *value < 1 || *value > max_thread_count) return malformed(Setting::threads, *text);
    return static_cast<int>(*value);
  });
}

Result<LogLevel> Settings::log_level() const {
  return catch_out_of_memory([&]() -> Result<LogLevel> {
    const auto text = given(Setting::log);
    if (!text) return LogLevel::info;
    if (const auto level = log_level_from_name(trim(*text))) return *level;
    return malformed(Setting::log, *text);
  });
}

Result<std::filesystem::path> Settings::cache_dir() const {
  return catch_out_of_memory([&]() -> Result<std::filesystem::path> {
    if (const auto folder = given(Setting::cache_dir)) return std::filesystem::path(*folder);
    // The XDG rule: a relative XDG_CACHE_HOME is to be ignored.
    if (const auto cache = variable("XDG_CACHE_HOME"); cache && cache->starts_with('/')) {
      return std::filesystem::path(*cache) / "cingulum";
    }
    if (const auto home = variable("HOME")) return std::filesystem::path(*home) / ".cache" / "cingulum";
    return fail(ErrorKind::not_found, "no folder for the cache: HOME is not set; set CINGULUM_CACHE_DIR");
  });
}

std::string_view Settings::runtime_dir() const {
  const auto folder = variable("XDG_RUNTIME_DIR");
  return folder && folder->starts_with('/') ? *folder : std::string_view();
}

Result<std::uint64_t> Settings::cache_limit_bytes() const {
  return catch_out_of_memory([&]() -> Result<std::uint64_t> {
    const auto text = given(Setting::cache_limit);
    if (!text) return default_cache_limit_bytes;
    const Result<std::uint64_t> value = parse_bytes(*text);
    if (!value) return malformed(Setting::cache_limit, *text);
    return *value;
  });
}

Result<std::optional<std::uint64_t>> Settings::memory_limit_bytes() const {
  return catch_out_of_memory([&]() -> Result<std::optional<std::uint64_t>> {
    const auto text = given(Setting::memory_limit);
    if (!text) return std::nullopt;
    const Result<std::uint64_t> value = parse_bytes(*text);
    if (!value) return malformed(Setting::memory_limit, *text);
    return *value;
  });
}

Result<bool> Settings::no_sync() const {
  return catch_out_of_memory([&]() -> Result<bool> {
    const auto text = given(Setting::no_sync);
    if (!text) return false;
    const Result<bool> value = parse_flag(trim(*text));
    if (!value) return malformed(Setting::no_sync, *text);
    return *value;
  });
}

Result<std::optional<std::filesystem::path>> Settings::library(Setting which) const {
  return catch_out_of_memory([&]() -> Result<std::optional<std::filesystem::path>> {
    const auto text = given(which);
    if (!text) return std::nullopt;
    return std::filesystem::path(*text);
  });
}

Status Settings::check() const {
  CGL_TRY(devices().map([](auto&&) {}));
  CGL_TRY(threads().map([](auto&&) {}));
  CGL_TRY(log_level().map([](auto&&) {}));
  CGL_TRY(cache_limit_bytes().map([](auto&&) {}));
  CGL_TRY(memory_limit_bytes().map([](auto&&) {}));
  CGL_TRY(no_sync().map([](auto&&) {}));
  return {};
}

namespace {

// Variables that the Makefile, the build and the tests read; the program does not.
bool is_build_or_test_variable(std::string_view name) {
  return name == "CINGULUM_CUDA" || name == "CINGULUM_WEBGPU" || name == "CINGULUM_VIEW" ||
         name == "CINGULUM_CUDA_ARCHS" || name.starts_with("CINGULUM_TEST_");
}

}  // namespace

std::vector<std::string> Settings::warnings() const {
  std::vector<std::string_view> names;
  for (const SettingInfo& info : list) names.push_back(info.name);
  std::vector<std::string> texts;
  for (const auto& [name, value] : variables_) {
    if (!name.starts_with(name_prefix) || std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (is_build_or_test_variable(name)) continue;
    texts.push_back(fmt::format("{} is not a setting{}", name, did_you_mean(name, names)));
  }
  return texts;
}

}  // namespace cingulum
