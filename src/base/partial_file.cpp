#include "base/partial_file.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <system_error>
#include <vector>

namespace cingulum {
namespace {

// Held while leftovers are looked for and while a new partial file gets its lock: between its creation and its lock it
// would look like a leftover.
std::mutex creation_mutex;

// Own process numbers come back after a restart of a container; the lock tells our living files from those.
bool writer_may_be_dead(pid_t process) {
  return process == ::getpid() || !process_is_alive(process);
}

bool remove_if_unlocked(FileLayer& layer, const char* path) {
  const int descriptor = uninterrupted([&] { return layer.open_existing(path); });
  if (descriptor < 0) return false;
  const bool dead = uninterrupted([&] { return layer.lock(descriptor); }) == 0;
  const bool removed = dead && uninterrupted([&] { return layer.unlink(path); }) == 0;
  (void)layer.close(descriptor);
  return removed;
}

}  // namespace

std::optional<PartialName> parse_partial_name(std::string_view name) {
  const std::size_t mark = name.rfind(partial_mark);
  if (mark == std::string_view::npos || mark == 0) return std::nullopt;
  PartialName partial{.output = name.substr(0, mark)};
  const std::string_view numbers = name.substr(mark + partial_mark.size());
  const char* end = numbers.data() + numbers.size();
  const auto process = std::from_chars(numbers.data(), end, partial.process);
  if (process.ec != std::errc() || partial.process <= 0 || process.ptr == end || *process.ptr != '-') {
    return std::nullopt;
  }
  unsigned long serial = 0;
  const auto count = std::from_chars(process.ptr + 1, end, serial);
  if (count.ec != std::errc() || count.ptr != end) return std::nullopt;
  return partial;
}

bool process_is_alive(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

int create_partial_file(FileLayer& layer, const std::string& target, mode_t permissions, std::string& partial) {
  static std::atomic<unsigned long> serial{0};
  const std::lock_guard lock(creation_mutex);
  while (true) {
    partial = fmt::format("{}{}{}-{}", target, partial_mark, ::getpid(), serial.fetch_add(1));
    const int descriptor = uninterrupted([&] { return layer.create(partial.c_str(), permissions); });
    // Another container with our process number writes the same output: take the next name.
    if (descriptor == -EEXIST) continue;
    // File systems without locks exist; leftovers stay there, because the living cannot be told from the dead.
    if (descriptor >= 0) (void)uninterrupted([&] { return layer.lock(descriptor); });
    return descriptor;
  }
}

int remove_dead_partial_files(const std::filesystem::path& folder, std::string_view name, FileLayer& layer) {
  const std::lock_guard lock(creation_mutex);
  std::vector<std::string> entries;
  // Where the list fails, the names that came before are looked at all the same.
  (void)uninterrupted([&] { return layer.list_folder(folder.c_str(), entries); });
  int removed = 0;
  for (const std::string& entry : entries) {
    const auto partial = parse_partial_name(entry);
    if (!partial || (!name.empty() && partial->output != name) || !writer_may_be_dead(partial->process)) continue;
    if (remove_if_unlocked(layer, (folder / entry).c_str())) ++removed;
  }
  return removed;
}

}  // namespace cingulum
