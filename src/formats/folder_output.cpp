#include "formats/folder_output.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/disk_space.hpp"
#include "base/partial_file.hpp"

namespace cingulum {
namespace {

// Behind the partial name of the folder that was there, where names cannot be exchanged.
constexpr std::string_view old_mark = "-old";

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// By the layer's list: the directory_iterator of the standard library ends the process where memory runs out.
void remove_dead_folders(FileLayer& layer, const std::string& parent, std::string_view name) {
  std::vector<std::string> entries;
  (void)uninterrupted([&] { return layer.list_folder(parent.c_str(), entries); });
  for (const std::string& entry : entries) {
    std::string_view partial_name = entry;
    if (partial_name.ends_with(old_mark)) partial_name.remove_suffix(old_mark.size());
    const auto partial = parse_partial_name(partial_name);
    if (!partial || partial->output != name || process_is_alive(partial->process)) continue;
    const std::filesystem::path folder = std::filesystem::path(parent) / entry;
    std::error_code ignored;
    if (std::filesystem::symlink_status(folder, ignored).type() == std::filesystem::file_type::directory) {
      std::filesystem::remove_all(folder, ignored);
    }
  }
}

int exchange(const char* a, const char* b) {
#if defined(__linux__)
  return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0 ? 0 : errno;
#else
  (void)a;
  (void)b;
  return ENOSYS;
#endif
}

}  // namespace

struct FolderOutput::State {
  State(FileLayer& used_layer, WriteOptions write_options, FolderKind replaceable, std::string output)
      : layer(used_layer), options(write_options), kind(replaceable), target(std::move(output)) {}
  ~State() {
    if (!partial_is_there) return;
    // What is left where memory has run out is removed by the next writer of the same name.
    (void)catch_out_of_memory([&]() -> Status {
      std::error_code ignored;
      std::filesystem::remove_all(partial, ignored);
      return {};
    });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  FileLayer& layer;
  WriteOptions options;
  FolderKind kind;
  std::string target;
  std::string parent;
  std::string partial;
  bool partial_is_there = false;
  bool replaces = false;
  std::atomic<std::uint64_t> written{0};  // bytes that write_file() was given
  std::mutex mutex;                       // guards folders
  std::set<std::string> folders = {""};

  [[nodiscard]] tl::unexpected<Error> failure(int error) const {
    if (disk_is_full(error)) {
      const std::uint64_t needed = std::max(options.expected_bytes, written.load());
      return full_disk(target, parent, system_error_text(error), options.expected_bytes >= needed ? "" : "at least ",
                       needed, free_bytes(layer, parent));
    }
    return fail_file(target, ErrorKind::io, "writing {}: {}", target, system_error_text(error));
  }
  [[nodiscard]] Status make_partial();
  [[nodiscard]] Status make_folders_of(const std::string& name);
  [[nodiscard]] Status commit();
  [[nodiscard]] Status give_final_name();
};

Status FolderOutput::State::make_partial() {
  FileState state;
  if (const int error = -uninterrupted([&] { return layer.state(target.c_str(), state); }); error != 0) {
    return failure(error);
  }
  if (state.kind != FileKind::absent) {
    if (!options.force) {
      return fail_file(target, ErrorKind::already_exists, "writing {}: it exists; use {} to replace it", target,
                       argument_name("force"));
    }
    std::error_code ignored;
    const bool replaceable =
        state.kind == FileKind::folder && (kind.is_one(target) || std::filesystem::is_empty(target, ignored));
    if (!replaceable) {
      return fail_file(target, ErrorKind::already_exists, "writing {}: it is not a {}, and only that is replaced",
                       target, kind.name);
    }
    replaces = true;
  }
  const std::string name = std::filesystem::path(target).filename().native();
  remove_dead_folders(layer, parent, name);
  // Temporary files of a volume have such names until they have none (zarr/level_file.hpp).
  (void)remove_dead_partial_files(parent, name, layer);
  CGL_TRY(check_space(layer, target, parent, options.expected_bytes));
  static std::atomic<unsigned long> serial{0};
  while (true) {
    partial = fmt::format("{}{}{}-{}", target, partial_mark, ::getpid(), serial.fetch_add(1));
    if (::mkdir(partial.c_str(), 0777) == 0) break;
    if (errno == EEXIST) continue;
    if (errno == ENOENT)
      return fail_file(target, ErrorKind::not_found, "writing {}: the folder {} does not exist", target, parent);
    return failure(errno);
  }
  partial_is_there = true;
  return {};
}

Status FolderOutput::State::make_folders_of(const std::string& name) {
  const std::lock_guard lock(mutex);
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string folder = name.substr(0, slash);
    if (!folders.insert(folder).second) continue;
    if (::mkdir((partial + "/" + folder).c_str(), 0777) != 0) return failure(errno);
  }
  return {};
}

Status FolderOutput::State::commit() {
  if (options.sync) {
    for (const std::string& folder : folders) {
      const std::string path = folder.empty() ? partial : partial + "/" + folder;
      const int error = -uninterrupted([&] { return layer.sync_folder(path.c_str()); });
      if (error != 0 && error != EINVAL && error != ENOTSUP && error != EACCES) return failure(error);
    }
  }
  if (options.companion) {
    CGL_TRY(options.companion->before_rename(partial));
    if (Status status = give_final_name(); !status) {
      options.companion->take_back();
      return status;
    }
  } else {
    CGL_TRY(give_final_name());
  }
  const int error = options.sync ? -uninterrupted([&] { return layer.sync_folder(parent.c_str()); }) : 0;
  if (error == 0 || error == EINVAL || error == ENOTSUP || error == EACCES) {
    return options.companion ? options.companion->after_rename() : Status();
  }
  // The companion stays between old and new here, since either may be found after a power failure.
  if (replaces) {
    return fail(
        ErrorKind::io,
        "writing {}: the new folder is complete, but syncing the folder {} failed ({}): a power failure may bring "
        "the old one back",
        target, parent, system_error_text(error));
  }
  partial_is_there = uninterrupted([&] { return layer.rename(target.c_str(), partial.c_str()); }) == 0;
  if (partial_is_there && options.companion) options.companion->take_back();
  return fail_file(target, ErrorKind::io, "writing {}: syncing the folder {}: {}", target, parent,
                   system_error_text(error));
}

Status FolderOutput::State::give_final_name() {
  if (replaces) {
    int error = exchange(partial.c_str(), target.c_str());
    if (error == EINVAL || error == ENOSYS || error == ENOTSUP) {
      const std::string aside = partial + std::string(old_mark);
      error = -uninterrupted([&] { return layer.rename(target.c_str(), aside.c_str()); });
      if (error == 0) {
        error = -uninterrupted([&] { return layer.rename(partial.c_str(), target.c_str()); });
        if (error != 0) {
          (void)uninterrupted([&] { return layer.rename(aside.c_str(), target.c_str()); });
        } else {
          partial = aside;
        }
      }
    }
    if (error != 0) return failure(error);
    // What is under the partial name now is the old folder: the destructor removes it.
  } else {
    int error = -uninterrupted([&] { return layer.rename_no_replace(partial.c_str(), target.c_str()); });
    if (error == EINVAL || error == ENOSYS || error == ENOTSUP) {
      // Replaces an empty folder at most.
      error = -uninterrupted([&] { return layer.rename(partial.c_str(), target.c_str()); });
    }
    if (error == EEXIST || error == ENOTEMPTY || error == ENOTDIR) {
      return fail_file(target, ErrorKind::already_exists,
                       "writing {}: it was made by another program meanwhile; use {} to replace it", target,
                       argument_name("force"));
    }
    if (error != 0) return failure(error);
    partial_is_there = false;
  }
  return {};
}

FolderOutput::FolderOutput(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
FolderOutput::FolderOutput(FolderOutput&&) noexcept = default;
FolderOutput& FolderOutput::operator=(FolderOutput&&) noexcept = default;
FolderOutput::~FolderOutput() = default;

Result<FolderOutput> FolderOutput::create(const std::filesystem::path& path, const FolderKind& kind,
                                          const WriteOptions& options) {
  FileLayer& layer = options.layer != nullptr ? *options.layer : FileLayer::system();
  auto state = std::make_unique<State>(layer, options, kind, without_trailing_slashes(path.native()));
  state->parent = std::filesystem::path(state->target).parent_path().native();
  if (state->parent.empty()) state->parent = ".";
  CGL_TRY(state->make_partial());
  return FolderOutput(std::move(state));
}

Result<AtomicFile> FolderOutput::create_file(const std::string& name) {
  CGL_TRY(state_->make_folders_of(name));
  WriteOptions options = state_->options;
  options.force = false;
  options.remove_leftovers = false;
  options.expected_bytes = 0;
  options.companion = nullptr;  // of the folder as a whole
  return AtomicFile::create(state_->partial + "/" + name, options);
}

Result<FolderOutput::File> FolderOutput::begin_file(const std::string& name) {
  CGL_TRY(state_->make_folders_of(name));
  // No other name first: nobody looks into the folder before it has its own.
  const std::string path = state_->partial + "/" + name;
  const int descriptor = uninterrupted([&] { return state_->layer.create(path.c_str(), 0666); });
  if (descriptor < 0) return state_->failure(-descriptor);
  return File(*state_, descriptor);
}

Status FolderOutput::write_file(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  CGL_TRY_ASSIGN(File file, begin_file(name));
  for (const std::span<const std::byte> part : parts) CGL_TRY(file.append(part));
  return file.end();
}

FolderOutput::File::File(File&& other) noexcept
    : folder_(other.folder_), descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderOutput::File::~File() {
  if (descriptor_ >= 0) (void)folder_->layer.close(descriptor_);
}

Status FolderOutput::File::append(std::span<const std::byte> bytes) {
  folder_->written += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return folder_->layer.write(descriptor_, bytes.data(), bytes.size()); });
    if (written <= 0) return folder_->failure(written == 0 ? ENOSPC : static_cast<int>(-written));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status FolderOutput::File::end() {
  const int descriptor = std::exchange(descriptor_, -1);
  const bool sync = folder_->options.sync;
  int error = sync ? -uninterrupted([&] { return folder_->layer.sync(descriptor); }) : 0;
  // On Linux a close that a signal interrupted has closed the file.
  const int closing = -folder_->layer.close(descriptor);
  if (error == 0 && closing != EINTR) error = closing;
  if (error != 0) return folder_->failure(error);
  return {};
}

Status FolderOutput::commit() {
  return state_->commit();
}

}  // namespace cingulum
