#include "zarr/store.hpp"

#include <algorithm>

#include "zarr/folder_store.hpp"
#include "zarr/zip_store.hpp"

namespace cingulum::zarr {

Status check_key(const std::string& key) {
  const auto refuse = [&](std::string_view why) { return fail(ErrorKind::corrupt, "key '{}' {}", key, why); };
  if (key.empty()) return refuse("is empty");
  if (key.find('\0') != std::string::npos) return refuse("holds a zero");
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view part = std::string_view(key).substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return refuse("leads out of its store");
    begin = end + 1;
  }
  return {};
}

Result<std::shared_ptr<const Store>> Store::open(const std::filesystem::path& path) {
  return catch_out_of_memory([&] {
    std::error_code error;
    return std::filesystem::is_directory(path, error) ? open_folder_store(path) : open_zip_store(path);
  });
}

Result<std::optional<std::string>> Store::read_text(const std::string& key, std::uint64_t limit_bytes) const {
  CGL_TRY_ASSIGN(const auto object, open_object(key));
  if (object == nullptr) return std::optional<std::string>();
  if (object->size() > limit_bytes) {
    return fail_file((path() / key).native(), ErrorKind::corrupt, "{}: {} bytes are too many for metadata (at most {})",
                     (path() / key).native(), object->size(), limit_bytes);
  }
  std::string text(static_cast<std::size_t>(object->size()), '\0');
  CGL_TRY(object->read_at(0, std::as_writable_bytes(std::span(text))));
  return std::optional(std::move(text));
}

Result<std::unique_ptr<StoreOutput>> new_hierarchy(const std::filesystem::path& path, const WriteOptions& options) {
  return catch_out_of_memory([&] {
    return path.extension() == ".zip" ? new_zip_hierarchy(path, options) : new_folder_hierarchy(path, options);
  });
}

}  // namespace cingulum::zarr
