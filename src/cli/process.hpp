// The process around the program: words and environment in, stdout and exit code out. Called by main() and by the
// console script of the Python package. It installs the handlers of Ctrl-C: for a process that does nothing else.
#pragma once

#include <string>
#include <vector>

namespace cingulum {

// `words` are those behind the program's name. The exit code.
[[nodiscard]] int run_process(const std::vector<std::string>& words);

}  // namespace cingulum
