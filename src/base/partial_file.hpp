// The files in which AtomicFile writes: NAME.partial-PID-N beside NAME. Made and locked here; and those that a killed
// process left behind are found and removed here. Writers of folders with very many files clean once per folder and
// switch WriteOptions::remove_leftovers off.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file_layer.hpp"

namespace cingulum {

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
