// A vendor library opened at run time (CUDA driver, NVRTC, NVML, wgpu-native). One place looks for it, says which file
// was taken and, when there is none, why: every file tried with the loader's own words.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

class SharedLibrary {
 public:
  // Tries `override_path` alone where there is one (a setting), else every name in turn: beside libcingulum, then in
  // `folders`, then by the system's own search.
  [[nodiscard]] static Result<SharedLibrary> open(const std::optional<std::filesystem::path>& override_path,
                                                  const std::vector<std::string>& names,
                                                  const std::vector<std::filesystem::path>& folders = {});

  SharedLibrary() = default;
  SharedLibrary(SharedLibrary&& other) noexcept;
  SharedLibrary& operator=(SharedLibrary&& other) noexcept;
  ~SharedLibrary() = default;  // vendor libraries stay loaded: their threads and handlers do not survive an unload

  [[nodiscard]] const std::string& path() const { return path_; }

  // Fills `function` with the address of `name`.
  template <class Function>
  [[nodiscard]] Status find(const char* name, Function*& function) const {
    CGL_TRY_ASSIGN(void* const address, find_address(name));
    function = reinterpret_cast<Function*>(address);
    return {};
  }

 private:
  [[nodiscard]] Result<void*> find_address(const char* name) const;

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace cingulum
