// What --version says: version, commit, compilers and the backends that were compiled in. Which devices are there is
// for `cingulum devices`.
#pragma once

#include <string>

namespace cingulum {

[[nodiscard]] std::string version_text();
[[nodiscard]] std::string version_json();

}  // namespace cingulum
