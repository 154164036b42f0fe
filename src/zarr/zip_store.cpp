#include "zarr/zip_store.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "formats/crc32.hpp"
#include "formats/file_bytes.hpp"
#include "formats/zip_archive.hpp"
#include "formats/zip_writer.hpp"

namespace cingulum::zarr {
namespace {

namespace fs = std::filesystem;

struct StoredEntry {
  ZipEntry entry;
  std::atomic<bool> verified{false};  // its CRC was compared, and was right
};

struct Archive {
  fs::path path;
  FileBytes file;
  std::map<std::string, StoredEntry, std::less<>> entries;  // by key
};

class EntryObject final : public StoredObject {
 public:
  EntryObject(std::shared_ptr<const Archive> archive, const StoredEntry& entry, std::vector<std::byte> inflated)
      : archive_(std::move(archive)), entry_(entry.entry), inflated_(std::move(inflated)) {}

  [[nodiscard]] std::uint64_t size() const override { return entry_.bytes; }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> to) const override {
    const std::span<const std::byte> all = content();
    if (offset > all.size() || to.size() > all.size() - offset) {
      const std::string name = (archive_->path / entry_.name).native();
      return fail_file(archive_->path.native(), ErrorKind::corrupt,
                       "{}: it ends at byte {}, {} bytes from byte {} on were expected", name, all.size(), to.size(),
                       offset);
    }
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
    return {};
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> in_memory() const override { return content(); }
  [[nodiscard]] std::string stamp() const override { return entry_.name; }

 private:
  [[nodiscard]] std::span<const std::byte> content() const {
    return entry_.deflated ? std::span<const std::byte>(inflated_) : packed_bytes(archive_->file.bytes(), entry_);
  }

  std::shared_ptr<const Archive> archive_;
  const ZipEntry& entry_;
  std::vector<std::byte> inflated_;
};

class ZipStore final : public Store {
 public:
  explicit ZipStore(std::shared_ptr<Archive> archive) : archive_(std::move(archive)) {}

  [[nodiscard]] Result<std::shared_ptr<const StoredObject>> open_object(const std::string& key) const override {
    CGL_TRY(add_context(check_key(key), "{}", archive_->path.native()));
    const auto found = archive_->entries.find(key);
    if (found == archive_->entries.end()) return std::shared_ptr<const StoredObject>();
    StoredEntry& stored = found->second;
    const std::span<const std::byte> file = archive_->file.bytes();
    std::vector<std::byte> inflated;
    if (stored.entry.deflated) {
      CGL_TRY_ASSIGN(inflated, add_file_context(inflate_entry(file, stored.entry), "reading", archive_->path.native()));
    } else if (!stored.verified.load(std::memory_order_relaxed)) {
      // Once a run: the archive is mapped, and whoever changes it meanwhile breaks every reader.
      CGL_TRY(add_file_context(verify_entry(file, stored.entry), "reading", archive_->path.native()));
      stored.verified.store(true, std::memory_order_relaxed);
    }
    return std::make_shared<const EntryObject>(archive_, stored, std::move(inflated));
  }

  [[nodiscard]] Result<std::string> stamp_of_key(const std::string& key) const override {
    const auto found = archive_->entries.find(key);
    return found == archive_->entries.end() ? std::string() : found->second.entry.name;
  }

  [[nodiscard]] Result<Children> children(const std::string& prefix) const override {
    Children found;
    const std::string begin = prefix.empty() ? "" : prefix + "/";
    std::set<std::string> folders;
    for (auto entry = archive_->entries.lower_bound(begin); entry != archive_->entries.end(); ++entry) {
      if (!entry->first.starts_with(begin)) break;
      const std::string rest = entry->first.substr(begin.size());
      const std::size_t slash = rest.find('/');
      if (slash == std::string::npos) {
        found.keys.push_back(rest);
      } else {
        folders.insert(rest.substr(0, slash));
      }
    }
    found.folders.assign(folders.begin(), folders.end());
    return found;
  }

  [[nodiscard]] const fs::path& path() const override { return archive_->path; }
  [[nodiscard]] bool is_archive() const override { return true; }

 private:
  std::shared_ptr<Archive> archive_;
};

bool is_metadata_name(std::string_view name) {
  return name == "zarr.json" || name == ".zarray" || name == ".zgroup";
}

// The folder, with its slash, that holds everything; empty where the hierarchy is at the root.
std::string common_folder(const std::vector<ZipEntry>& entries) {
  std::string folder;
  for (const ZipEntry& entry : entries) {
    const std::size_t slash = entry.name.find('/');
    if (slash == std::string::npos || is_metadata_name(entry.name)) return {};
    if (folder.empty()) folder = entry.name.substr(0, slash + 1);
    if (!entry.name.starts_with(folder)) return {};
  }
  const bool has_metadata = std::any_of(entries.begin(), entries.end(), [&](const ZipEntry& entry) {
    return is_metadata_name(std::string_view(entry.name).substr(folder.size()));
  });
  return has_metadata ? folder : std::string();
}

class NewArchive final : public StoreOutput {
 public:
  NewArchive(ZipWriter writer, fs::path path) : writer_(std::move(writer)), path_(std::move(path)) {}

  [[nodiscard]] Status put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    CGL_TRY(check_key(key));
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
    for (const auto part : parts) {
      bytes += part.size();
      crc = crc32(part, crc);
    }
    const std::lock_guard lock(mutex_);
    if (!keys_.insert(key).second) {
      return fail_file(path_.native(), ErrorKind::invalid_state,
                       "writing {}: {} was written before, and entries of an archive cannot be replaced",
                       path_.native(), key);
    }
    CGL_TRY(writer_.begin_known(key, bytes, crc));
    for (const auto part : parts) CGL_TRY(writer_.append(part));
    return writer_.end();
  }
  [[nodiscard]] bool ordered() const override { return true; }
  [[nodiscard]] Status commit() override { return writer_.commit(); }

 private:
  std::mutex mutex_;
  ZipWriter writer_;
  fs::path path_;
  std::set<std::string> keys_;
};

}  // namespace

Result<std::shared_ptr<const Store>> open_zip_store(const fs::path& path) {
  auto archive = std::make_shared<Archive>();
  archive->path = path;
  CGL_TRY_ASSIGN(archive->file, FileBytes::map(path));
  if (!looks_like_zip(archive->file.bytes())) {
    return fail_file(path.native(), ErrorKind::corrupt, "{}: it is neither a folder nor a zip archive", path.native());
  }
  CGL_TRY_ASSIGN(std::vector<ZipEntry> entries,
                 add_file_context(read_zip_directory(archive->file.bytes()), "reading", path.native()));
  const std::string folder = common_folder(entries);
  for (ZipEntry& entry : entries) {
    std::string key = entry.name.substr(folder.size());
    archive->entries[std::move(key)].entry = std::move(entry);
  }
  return std::make_shared<const ZipStore>(std::move(archive));
}

Result<std::unique_ptr<StoreOutput>> new_zip_hierarchy(const fs::path& path, const WriteOptions& options) {
  CGL_TRY_ASSIGN(ZipWriter writer, ZipWriter::create(path, options));
  return std::make_unique<NewArchive>(std::move(writer), path);
}

}  // namespace cingulum::zarr
