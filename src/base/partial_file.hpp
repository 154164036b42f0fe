// The files in which AtomicFile writes: NAME.partial-PID-N beside NAME. Made and locked here; and those that a killed
// process left behind are found and removed here. Writers of folders with very many files clean once per folder and
// switch WriteOptions::remove_leftovers off.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_layer.hpp"

namespace cingulum {

constexpr std::string_view partial_mark = ".partial-";

struct PartialName {
  std::string_view output = {};  // NAME, a part of what was parsed
  pid_t process = 0;             // 1 or more
};

// Reads "NAME.partial-PID-N"; nothing for every other name.
[[nodiscard]] std::optional<PartialName> parse_partial_name(std::string_view name);

// False where there is no such process on this machine; true also where we may not ask.
[[nodiscard]] bool process_is_alive(pid_t process);

// Creates and locks a partial file for the output `target`; its path is put into `partial`. The value is the
// descriptor, or minus errno.
[[nodiscard]] int create_partial_file(FileLayer& layer, const std::string& target, mode_t permissions,
                                      std::string& partial);

// Removes the partial files in `folder` whose writers are dead: those of the output `name`, or of any when it is empty.
// A writer is dead when its process is gone and nobody holds the file's lock, so that writers in other containers and
// on other hosts that share the folder are not disturbed. What cannot be removed is left; the value is how many were
// removed.
int remove_dead_partial_files(const std::filesystem::path& folder, std::string_view name,
                              FileLayer& layer = FileLayer::system());

}  // namespace cingulum
