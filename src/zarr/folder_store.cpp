#include "zarr/folder_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>
#if defined(__linux__)
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

#include "base/file_layer.hpp"
#include "formats/folder_output.hpp"

namespace cingulum::zarr {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_;
};

// Both name a file that may be replaced at any time; it is the same one while all of this is the same.
std::string stamp_of(const struct stat& state) {
  return fmt::format("{}:{}:{}:{}.{}", state.st_dev, state.st_ino, state.st_size, state.st_mtim.tv_sec,
                     state.st_mtim.tv_nsec);
}

class FileObject final : public StoredObject {
 public:
  FileObject(Descriptor descriptor, const struct stat& state, fs::path path)
      : descriptor_(std::move(descriptor)),
        size_(static_cast<std::uint64_t>(state.st_size)),
        stamp_(stamp_of(state)),
        path_(std::move(path)) {}

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> to) const override {
    std::size_t done = 0;
    while (done < to.size()) {
      const ssize_t got =
          ::pread(descriptor_.get(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return fail_file(path_.native(), ErrorKind::io, "reading {}: {}", path_.native(), system_error_text(errno));
      }
      if (got == 0) {
        return fail_file(path_.native(), ErrorKind::corrupt,
                         "{}: it ends at byte {}, {} bytes from byte {} on were expected", path_.native(),
                         offset + done, to.size(), offset);
      }
      done += static_cast<std::size_t>(got);
    }
    return {};
  }
  [[nodiscard]] std::optional<Extent> extent() const override { return Extent{descriptor_.get(), path_, 0}; }
  [[nodiscard]] std::string stamp() const override { return stamp_; }

 private:
  Descriptor descriptor_;
  std::uint64_t size_;
  std::string stamp_;
  fs::path path_;
};

// Opens a file below `root`; minus errno on failure, -EXDEV where the way leads out of the root.
int open_beneath(int root, const fs::path& root_path, const std::string& key) {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a pipe must not make us wait
#if defined(__linux__) && defined(SYS_openat2)
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const int opened = static_cast<int>(::syscall(SYS_openat2, root, key.c_str(), &how, sizeof(how)));
  if (opened >= 0) return opened;
  if (errno != ENOSYS && errno != EPERM) return -errno;
#endif
  // Kernels and containers without that call: looked at by name first.
  std::error_code error;
  const fs::path real_root = fs::canonical(root_path, error);
  if (error) return -error.value();
  const fs::path real = fs::canonical(root_path / key, error);
  if (error) return -error.value();
  const auto [end, ignored] = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  if (end != real_root.end()) return -EXDEV;
  const int number = ::openat(root, key.c_str(), flags);
  return number >= 0 ? number : -errno;
}

class FolderStore final : public Store {
 public:
  FolderStore(Descriptor root, fs::path path) : root_(std::move(root)), path_(std::move(path)) {}

  [[nodiscard]] Result<std::shared_ptr<const StoredObject>> open_object(const std::string& key) const override {
    CGL_TRY(add_context(check_key(key), "{}", path_.native()));
    const fs::path file = path_ / key;
    const int number = uninterrupted([&] { return open_beneath(root_.get(), path_, key); });
    if (number == -ENOENT || number == -ENOTDIR) return std::shared_ptr<const StoredObject>();
    if (number == -EXDEV) {
      return fail_file(file.native(), ErrorKind::corrupt, "{}: it leads out of the folder by a link", file.native());
    }
    if (number < 0) {
      return fail_file(file.native(), ErrorKind::io, "opening {}: {}", file.native(), system_error_text(-number));
    }
    Descriptor descriptor(number);
    struct stat state {};
    if (::fstat(descriptor.get(), &state) != 0) {
      return fail_file(file.native(), ErrorKind::io, "opening {}: {}", file.native(), system_error_text(errno));
    }
    if (S_ISDIR(state.st_mode)) return std::shared_ptr<const StoredObject>();
    if (!S_ISREG(state.st_mode)) {
      return fail_file(file.native(), ErrorKind::corrupt, "{}: it is not a regular file", file.native());
    }
    return std::make_shared<const FileObject>(std::move(descriptor), state, file);
  }

  [[nodiscard]] Result<std::string> stamp_of_key(const std::string& key) const override {
    struct stat state {};
    if (::fstatat(root_.get(), key.c_str(), &state, 0) != 0) return std::string();
    return stamp_of(state);
  }

  [[nodiscard]] Result<Children> children(const std::string& prefix) const override {
    if (!prefix.empty()) CGL_TRY(add_context(check_key(prefix), "{}", path_.native()));
    const fs::path folder = prefix.empty() ? path_ : path_ / prefix;
    Children found;
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::end(entry);
         entry.increment(error)) {
      std::error_code ignored;
      const std::string name = entry->path().filename().native();
      // Links to folders are not followed, so that a walk ends.
      const fs::file_type type = entry->symlink_status(ignored).type();
      if (type == fs::file_type::directory) {
        found.folders.push_back(name);
      } else if (type == fs::file_type::regular || entry->is_regular_file(ignored)) {
        found.keys.push_back(name);
      }
    }
    if (error && error.value() != ENOENT && error.value() != ENOTDIR) {
      return fail_file(folder.native(), ErrorKind::io, "reading the folder {}: {}", folder.native(), error.message());
    }
    std::sort(found.keys.begin(), found.keys.end());
    std::sort(found.folders.begin(), found.folders.end());
    return found;
  }

  [[nodiscard]] const fs::path& path() const override { return path_; }
  [[nodiscard]] bool is_archive() const override { return false; }

 private:
  Descriptor root_;
  fs::path path_;
};

bool is_zarr_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "zarr.json", ignored) || fs::is_regular_file(folder / ".zgroup", ignored) ||
         fs::is_regular_file(folder / ".zarray", ignored);
}
constexpr FolderKind zarr_folder{"Zarr hierarchy", is_zarr_folder};

class NewFolderKey final : public KeyOutput {
 public:
  explicit NewFolderKey(FolderOutput::File file) : file_(std::move(file)) {}
  [[nodiscard]] Status append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  [[nodiscard]] Status end() override { return file_.end(); }

 private:
  FolderOutput::File file_;
};

class NewFolder final : public StoreOutput {
 public:
  explicit NewFolder(FolderOutput folder) : folder_(std::move(folder)) {}
  [[nodiscard]] Status put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    CGL_TRY(check_key(key));
    return folder_.write_file(key, parts);
  }
  [[nodiscard]] Result<std::unique_ptr<KeyOutput>> begin(const std::string& key, std::uint64_t) override {
    CGL_TRY(check_key(key));
    CGL_TRY_ASSIGN(FolderOutput::File file, folder_.begin_file(key));
    return std::make_unique<NewFolderKey>(std::move(file));
  }
  [[nodiscard]] bool takes_pieces() const override { return true; }
  [[nodiscard]] Status commit() override { return folder_.commit(); }

 private:
  FolderOutput folder_;
};

class ReplacedKey final : public KeyOutput {
 public:
  explicit ReplacedKey(AtomicFile file) : file_(std::move(file)) {}
  [[nodiscard]] Status append(std::span<const std::byte> bytes) override { return file_.append(bytes); }
  [[nodiscard]] Status end() override { return file_.commit(); }

 private:
  AtomicFile file_;
};

class ExistingFolder final : public StoreOutput {
 public:
  ExistingFolder(fs::path path, WriteOptions options) : path_(std::move(path)), options_(std::move(options)) {}
  [[nodiscard]] Status put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    std::uint64_t bytes = 0;
    for (const auto part : parts) bytes += part.size();
    CGL_TRY_ASSIGN(AtomicFile file, create(key, bytes));
    for (const auto part : parts) CGL_TRY(file.append(part));
    return file.commit();
  }
  [[nodiscard]] Result<std::unique_ptr<KeyOutput>> begin(const std::string& key,
                                                         std::uint64_t expected_bytes) override {
    CGL_TRY_ASSIGN(AtomicFile file, create(key, expected_bytes));
    return std::make_unique<ReplacedKey>(std::move(file));
  }
  [[nodiscard]] bool takes_pieces() const override { return true; }
  [[nodiscard]] Status commit() override { return {}; }

 private:
  [[nodiscard]] Result<AtomicFile> create(const std::string& key, std::uint64_t bytes) {
    CGL_TRY(check_key(key));
    CGL_TRY(make_folders_of(key));
    WriteOptions options = options_;
    options.force = true;
    options.companion = nullptr;
    options.expected_bytes = bytes;
    options.buffer_bytes = 1;  // pieces are large, and in memory already
    return AtomicFile::create(path_ / key, options);
  }
  [[nodiscard]] Status make_folders_of(const std::string& key) {
    const std::lock_guard lock(mutex_);
    FileLayer& layer = options_.layer != nullptr ? *options_.layer : FileLayer::system();
    for (std::size_t slash = key.find('/'); slash != std::string::npos; slash = key.find('/', slash + 1)) {
      const std::string folder = key.substr(0, slash);
      if (!folders_.insert(folder).second) continue;
      const fs::path path = path_ / folder;
      if (::mkdir(path.c_str(), 0777) != 0) {
        if (errno == EEXIST) continue;
        return fail_file(path.native(), ErrorKind::io, "making the folder {}: {}", path.native(),
                         system_error_text(errno));
      }
      // A file in a folder that is not on the disk is lost with it.
      const std::string parent = path.parent_path().native();
      const int error = options_.sync ? -uninterrupted([&] { return layer.sync_folder(parent.c_str()); }) : 0;
      if (error != 0 && error != EINVAL && error != ENOTSUP && error != EACCES) {
        return fail_file(path.native(), ErrorKind::io, "syncing the folder {}: {}", parent, system_error_text(error));
      }
    }
    return {};
  }

  fs::path path_;
  WriteOptions options_;
  std::mutex mutex_;
  std::set<std::string> folders_;
};

}  // namespace

Result<std::shared_ptr<const Store>> open_folder_store(const fs::path& path) {
  Descriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) {
    return fail_file(path.native(), ErrorKind::io, "opening the folder {}: {}", path.native(),
                     system_error_text(errno));
  }
  return std::make_shared<const FolderStore>(std::move(root), path);
}

Result<std::unique_ptr<StoreOutput>> new_folder_hierarchy(const fs::path& path, const WriteOptions& options) {
  CGL_TRY_ASSIGN(FolderOutput folder, FolderOutput::create(path, zarr_folder, options));
  return std::make_unique<NewFolder>(std::move(folder));
}

Result<std::unique_ptr<StoreOutput>> existing_folder(const fs::path& path, const WriteOptions& options) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<StoreOutput>> {
    if (!is_zarr_folder(path)) {
      return fail_file(path.native(), ErrorKind::not_found, "writing into {}: it is not a Zarr hierarchy",
                       path.native());
    }
    return std::make_unique<ExistingFolder>(path, options);
  });
}

}  // namespace cingulum::zarr
