#include "device/shared_library.hpp"

#include <dlfcn.h>

#include <utility>

namespace cingulum {
namespace {

// The folder that libcingulum (or the program it is part of) was loaded from; empty if the loader does not say.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::filesystem::path{} : path.parent_path();
}

std::string loader_message() {
  const char* const text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

SharedLibrary::SharedLibrary(SharedLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
  handle_ = std::exchange(other.handle_, nullptr);
  path_ = std::move(other.path_);
  return *this;
}

Result<SharedLibrary> SharedLibrary::open(const std::optional<std::filesystem::path>& override_path,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> candidates;
  if (override_path) {
    candidates.push_back(override_path->string());
  } else {
    std::error_code error;
    std::vector<std::filesystem::path> places = folders;
    if (const auto own = own_folder(); !own.empty()) {
      places.insert(places.begin(), {own, own.parent_path() / "lib"});
    }
    for (const auto& place : places) {
      for (const auto& name : names) {
        if (std::filesystem::exists(place / name, error)) candidates.push_back((place / name).string());
      }
    }
    candidates.insert(candidates.end(), names.begin(), names.end());
  }

  std::string reasons;
  for (const auto& candidate : candidates) {
    dlerror();
    if (void* const handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      SharedLibrary library;
      library.handle_ = handle;
      library.path_ = candidate;
      return library;
    }
    if (!reasons.empty()) reasons += "; ";
    reasons += loader_message();
  }
  return fail(ErrorKind::unavailable, "{}", reasons);
}

Result<void*> SharedLibrary::find_address(const char* name) const {
  dlerror();
  void* const address = dlsym(handle_, name);
  if (address == nullptr) {
    return fail(ErrorKind::unavailable, "{} has no function {}: too old, or not the library it is named after", path_,
                name);
  }
  return address;
}

}  // namespace cingulum
