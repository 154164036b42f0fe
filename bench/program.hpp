// What the programs of bench/ share besides measuring: how they end on a failure, their scratch folder, the peers they
// start, and the file they leave.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/result.hpp"

namespace cingulum::bench {

// This program; the others of the build lie beside it.
inline std::filesystem::path own_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

[[noreturn]] inline void give_up(std::string_view message) {
  fmt::print(stderr, "{}: {}\n", own_program().filename().string(), message);
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

// An empty name: no file is wanted.
inline void write_report(const std::string& out, const nlohmann::ordered_json& report) {
  if (out.empty()) return;
  WriteOptions replace;
  replace.force = true;
  require(write_file_atomically(out, json_text(report), replace));
}

// Removed at the end with all that is in it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::filesystem::path& where = std::filesystem::temp_directory_path()) {
    std::string name = (where / "cingulum-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) give_up(fmt::format("no folder can be made in {}", where.string()));
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

// The processor's time of all threads of this program.
inline double processor_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct ChildRun {
  double seconds = 0;
  double processor_seconds = 0;
  std::uint64_t peak_bytes = 0;
  bool succeeded = false;
};

// Standard output goes to `output`.
inline ChildRun run_child(const std::vector<std::string>& words, const std::filesystem::path& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0) ::dup2(file, STDOUT_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage = {};
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child) return {};
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto in_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {seconds, in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime),
          static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

}  // namespace cingulum::bench
