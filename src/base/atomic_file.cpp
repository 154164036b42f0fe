#include "base/atomic_file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/bulk_memory.hpp"
#include "base/disk_space.hpp"
#include "base/interrupt.hpp"
#include "base/mapped_growth.hpp"
#include "base/partial_file.hpp"
#include "base/quantity.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"

namespace cingulum {
namespace {

constexpr mode_t default_permissions = 0666;  // less the umask
// Fewer bytes are written sooner than mapped; and one thread writes about as fast as two fill a map, whose pages cost
// more than a call.
constexpr std::uint64_t least_mapped_bytes = std::uint64_t{1} << 20U;
constexpr int least_mapping_threads = 4;
// More wait for each other in the system, which hands out pages; the rest of a pool has other work.
constexpr int most_mapping_threads = 8;
// Parts made at a time: they stay in the cache until they are written.
constexpr std::uint64_t most_made_bytes = std::uint64_t{4} << 20U;
// Written before the system is asked to bring it to the disk.
constexpr std::uint64_t sync_ahead_bytes = std::uint64_t{32} << 20U;

bool not_supported(int error) {
  return error == EINVAL || error == ENOSYS || error == ENOTSUP || error == EOPNOTSUPP;
}

struct Target {
  std::string path;    // behind symbolic links
  std::string folder;  // "." when the path names none
  std::string name;
  bool exists = false;
  mode_t permissions = default_permissions;
};

Result<Target> examine_target(FileLayer& layer, const std::string& shown, bool force) {
  if (shown.empty()) return fail(ErrorKind::invalid_argument, "writing: the name of the output is empty");
  if (shown.find('\0') != std::string::npos) {
    return fail(ErrorKind::invalid_argument, "writing: the name of the output contains a zero byte");
  }
  Target target;
  target.path = shown;
  FileState state;
  const auto look = [&] { return uninterrupted([&] { return layer.state(target.path.c_str(), state); }); };
  int error = -look();
  if (error == 0 && state.kind == FileKind::link) {
    error = -uninterrupted([&] { return layer.resolve(shown.c_str(), target.path); });
    if (error == ENOENT)
      return fail_file(shown, ErrorKind::not_found, "writing {}: it is a link to a file that is not there", shown);
    if (error == 0) error = -look();
  }
  if (error != 0) return fail_file(shown, ErrorKind::io, "writing {}: {}", shown, system_error_text(error));
  switch (state.kind) {
    case FileKind::absent: break;
    case FileKind::regular:
      if (!force)
        return fail_file(shown, ErrorKind::already_exists, "writing {}: it exists; use {} to replace it", shown,
                         argument_name("force"));
      target.exists = true;
      // What was private stays private.
      target.permissions = state.permissions;
      break;
    case FileKind::folder: return fail_file(shown, ErrorKind::already_exists, "writing {}: it is a folder", shown);
    case FileKind::link:
    case FileKind::other:
      return fail_file(shown, ErrorKind::already_exists, "writing {}: it is not a regular file", shown);
  }
  const std::size_t slash = target.path.rfind('/');
  target.name = slash == std::string::npos ? target.path : target.path.substr(slash + 1);
  target.folder = slash == std::string::npos ? "." : slash == 0 ? "/" : target.path.substr(0, slash);
  if (target.name.empty())
    return fail_file(shown, ErrorKind::invalid_argument, "writing {}: the name ends with a slash", shown);
  return target;
}

tl::unexpected<Error> create_failure(const std::string& shown, const std::string& folder, int error) {
  if (error == ENOENT)
    return fail_file(shown, ErrorKind::not_found, "writing {}: the folder {} does not exist", shown, folder);
  if (error == ENOTDIR) return fail_file(shown, ErrorKind::not_found, "writing {}: {} is not a folder", shown, folder);
  return fail_file(shown, ErrorKind::io, "writing {}: creating a file in {}: {}", shown, folder,
                   system_error_text(error));
}

}  // namespace

struct AtomicFile::State {
  enum class Phase { writing, committed, discarded };

  State(FileLayer& used_layer, const WriteOptions& write_options, std::string shown_path, Target output)
      : layer(used_layer), options(write_options), shown(std::move(shown_path)), target(std::move(output)) {}
  ~State() { discard(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  FileLayer& layer;
  WriteOptions options;
  std::string shown;
  Target target;
  std::string partial;
  int descriptor = -1;
  bool partial_is_there = false;
  int registration = -1;
  Phase phase = Phase::writing;
  std::vector<std::byte> buffer;
  std::size_t buffered = 0;
  std::uint64_t flushed = 0;
  std::uint64_t sync_begun = 0;  // up to here
  BulkVector<std::byte> made;    // parts that go to a disk
  std::optional<bool> in_memory;
  std::optional<MappedGrowth> growth;  // since parts were appended to a file in memory

  [[nodiscard]] Status create_partial();
  [[nodiscard]] Status check_writing() const;
  [[nodiscard]] Status write_all(const std::byte* data, std::size_t size);
  [[nodiscard]] Status flush();
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  [[nodiscard]] Status append_parts(std::span<const std::uint64_t> offsets, const MakePart& make);
  void make_all(std::span<const std::uint64_t> offsets, std::size_t first, std::size_t last, std::span<std::byte> place,
                int most_threads, const MakePart& make);
  [[nodiscard]] Status append_mapped(std::span<const std::uint64_t> offsets, const MakePart& make);
  [[nodiscard]] Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] Status commit();
  [[nodiscard]] int give_final_name();
  [[nodiscard]] tl::unexpected<Error> give_up(int error);
  void discard() noexcept;
  void take_companion_back() noexcept;
};

Status AtomicFile::State::create_partial() {
  if (options.remove_leftovers) remove_dead_partial_files(target.folder, target.name, layer);
  CGL_TRY(check_space(layer, shown, target.folder, options.expected_bytes));
  descriptor = create_partial_file(layer, target.path, target.permissions, partial);
  if (descriptor < 0) return create_failure(shown, target.folder, -descriptor);
  partial_is_there = true;
  registration = register_partial_file(partial.c_str());
  return {};
}

Status AtomicFile::State::check_writing() const {
  if (phase == Phase::writing) return {};
  return fail_file(
      shown, ErrorKind::invalid_state, "writing {}: {}", shown,
      phase == Phase::committed ? "the file is complete already" : "it was given up after an earlier failure");
}

// The partial file goes first: the free space in the message is what a new attempt would find.
tl::unexpected<Error> AtomicFile::State::give_up(int error) {
  const std::uint64_t written = flushed + buffered;
  discard();
  if (!disk_is_full(error)) return fail_file(shown, ErrorKind::io, "writing {}: {}", shown, system_error_text(error));
  const bool total_known = options.expected_bytes >= written;
  return full_disk(shown, target.folder, system_error_text(error), total_known ? "" : "at least ",
                   std::max(options.expected_bytes, written), free_bytes(layer, target.folder));
}

Status AtomicFile::State::write_all(const std::byte* data, std::size_t size) {
  while (size > 0) {
    // The file's own position knows nothing of what was mapped.
    const ssize_t written = uninterrupted(
        [&] { return growth ? layer.write_at(descriptor, data, size, flushed) : layer.write(descriptor, data, size); });
    // Nothing written and no error: going on could go on for ever.
    if (written <= 0) return give_up(written < 0 ? static_cast<int>(-written) : EIO);
    data += written;
    size -= static_cast<std::size_t>(written);
    flushed += static_cast<std::uint64_t>(written);
  }
  if (options.sync && flushed - sync_begun >= sync_ahead_bytes) {
    layer.begin_sync(descriptor, sync_begun, flushed - sync_begun);
    sync_begun = flushed;
  }
  return {};
}

Status AtomicFile::State::flush() {
  const std::size_t size = std::exchange(buffered, 0);
  return write_all(buffer.data(), size);
}

Status AtomicFile::State::append(std::span<const std::byte> bytes) {
  CGL_TRY(check_writing());
  while (!bytes.empty()) {
    if (buffered == 0 && bytes.size() >= buffer.size()) return write_all(bytes.data(), bytes.size());
    const std::size_t count = std::min(bytes.size(), buffer.size() - buffered);
    std::memcpy(buffer.data() + buffered, bytes.data(), count);
    buffered += count;
    bytes = bytes.subspan(count);
    if (buffered == buffer.size()) CGL_TRY(flush());
  }
  return {};
}

Status AtomicFile::State::append_parts(std::span<const std::uint64_t> offsets, const MakePart& make) {
  CGL_TRY(check_writing());
  const std::size_t parts = offsets.size() - 1;
  if (offsets[parts] >= least_mapped_bytes && options.pool != nullptr &&
      options.pool->threads() >= least_mapping_threads) {
    if (!in_memory) in_memory = layer.is_in_memory(descriptor);
    if (*in_memory) return append_mapped(offsets, make);
  }
  for (std::size_t first = 0, last = 0; first < parts; first = last) {
    last = first + 1;
    while (last < parts && offsets[last + 1] - offsets[first] <= most_made_bytes) ++last;
    made.resize(static_cast<std::size_t>(offsets[last] - offsets[first]));
    make_all(offsets, first, last, made, max_thread_count, make);
    CGL_TRY(append(made));
  }
  return {};
}

Status AtomicFile::State::append_mapped(std::span<const std::uint64_t> offsets, const MakePart& make) {
  CGL_TRY(flush());
  if (!growth) growth.emplace(layer, descriptor, flushed);
  const std::uint64_t size = offsets.back();
  MappedGrowth::Bytes mapped;
  if (const int error = growth->map(flushed, static_cast<std::size_t>(size), mapped); error != 0) return give_up(error);
  make_all(offsets, 0, offsets.size() - 1, mapped.bytes(), most_mapping_threads, make);
  flushed += size;
  return {};
}

// The parts from `first` to before `last` into `place`, by so many threads at most.
void AtomicFile::State::make_all(std::span<const std::uint64_t> offsets, std::size_t first, std::size_t last,
                                 std::span<std::byte> place, int most_threads, const MakePart& make) {
  std::atomic<std::size_t> next = first;
  const auto make_some = [&](std::size_t, std::size_t) {
    for (std::size_t i = next++; i < last; i = next++) {
      make(i, place.subspan(static_cast<std::size_t>(offsets[i] - offsets[first]),
                            static_cast<std::size_t>(offsets[i + 1] - offsets[i])));
    }
  };
  const int threads = options.pool == nullptr ? 1 : std::min(options.pool->threads(), most_threads);
  if (threads == 1) {
    make_some(0, 1);
  } else {
    options.pool->parallel_for(std::min(last - first, static_cast<std::size_t>(threads)), 1, make_some);
  }
}

Status AtomicFile::State::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  CGL_TRY(check_writing());
  const std::uint64_t size = flushed + buffered;
  if (offset > size || bytes.size() > size - offset) {
    return fail_file(shown, ErrorKind::invalid_argument,
                     "writing {}: bytes {} to {} are beyond the {} that were appended", shown, offset,
                     offset + bytes.size(), size);
  }
  if (offset >= flushed) {
    if (!bytes.empty()) std::memcpy(buffer.data() + (offset - flushed), bytes.data(), bytes.size());
    return {};
  }
  CGL_TRY(flush());
  while (!bytes.empty()) {
    const ssize_t written =
        uninterrupted([&] { return layer.write_at(descriptor, bytes.data(), bytes.size(), offset); });
    if (written <= 0) return give_up(written < 0 ? static_cast<int>(-written) : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

// 0 or an errno; keeps account of whether the partial name is still there.
int AtomicFile::State::give_final_name() {
  const char* from = partial.c_str();
  const char* to = target.path.c_str();
  const auto rename = [&] {
    const int error = -uninterrupted([&] { return layer.rename(from, to); });
    partial_is_there = error != 0;
    return error;
  };
  if (options.force) return rename();

  const int renamed = -uninterrupted([&] { return layer.rename_no_replace(from, to); });
  partial_is_there = renamed != 0;
  if (!not_supported(renamed)) return renamed;
  const int linked = -uninterrupted([&] { return layer.link(from, to); });
  if (linked == 0) {
    // When this fails the destructor tries once more.
    partial_is_there = uninterrupted([&] { return layer.unlink(from); }) != 0;
    return 0;
  }
  if (!not_supported(linked) && linked != EPERM && linked != EMLINK) return linked;
  // Neither is there (some network and removable file systems): two writers at the same moment could pass this check.
  FileState state;
  const int looked = -uninterrupted([&] { return layer.state(to, state); });
  if (looked != 0) return looked;
  if (state.kind != FileKind::absent) return EEXIST;
  return rename();
}

Status AtomicFile::State::commit() {
  CGL_TRY(check_writing());
  CGL_TRY(flush());
  if (growth) {
    if (const int error = growth->finish(flushed); error != 0) return give_up(error);
  }
  if (options.companion) options.companion->begin(partial);
  if (options.sync) {
    // Not repeated after a failure other than EINTR: the kernel may have dropped the data and would report success.
    if (const int error = -uninterrupted([&] { return layer.sync(descriptor); }); error != 0) return give_up(error);
  }
  // Before the file is closed: its lock tells others that its writer lives.
  if (options.companion) {
    if (Status status = options.companion->before_rename(partial); !status) {
      discard();
      return status;
    }
  }
  // On Linux a close that a signal interrupted has closed the file.
  const int closed = -layer.close(std::exchange(descriptor, -1));
  if (closed != 0 && closed != EINTR) {
    take_companion_back();
    return give_up(closed);
  }

  if (const int error = give_final_name(); error != 0) {
    take_companion_back();
    if (error != EEXIST) return give_up(error);
    discard();
    return fail_file(shown, ErrorKind::already_exists,
                     "writing {}: it was made by another program meanwhile; use {} to replace it", shown,
                     argument_name("force"));
  }
  phase = Phase::committed;
  const int error = options.sync ? -uninterrupted([&] { return layer.sync_folder(target.folder.c_str()); }) : 0;
  // Some file systems have no such call, and a folder without read permission cannot be opened for it.
  if (error == 0 || not_supported(error) || error == EACCES) {
    return options.companion ? options.companion->after_rename() : Status();
  }
  // The companion stays between old and new here, since either may be found after a power failure.
  if (target.exists) {
    return fail_file(
        shown, ErrorKind::io,
        "writing {}: the new content is complete, but syncing the folder {} failed ({}): a power failure may "
        "bring the old content back",
        shown, target.folder, system_error_text(error));
  }
  if (uninterrupted([&] { return layer.unlink(target.path.c_str()); }) == 0) take_companion_back();
  return fail_file(shown, ErrorKind::io, "writing {}: syncing the folder {}: {}", shown, target.folder,
                   system_error_text(error));
}

void AtomicFile::State::take_companion_back() noexcept {
  if (options.companion) options.companion->take_back();
}

void AtomicFile::State::discard() noexcept {
  growth.reset();  // before the descriptor that it uses
  if (descriptor >= 0) (void)layer.close(std::exchange(descriptor, -1));
  if (partial_is_there) (void)uninterrupted([&] { return layer.unlink(partial.c_str()); });
  partial_is_there = false;
  unregister_partial_file(std::exchange(registration, -1));
  buffered = 0;
  if (phase == Phase::writing) phase = Phase::discarded;
}

Status check_output(const std::filesystem::path& path, const WriteOptions& options) {
  return catch_out_of_memory([&]() -> Status {
    FileLayer& layer = options.layer != nullptr ? *options.layer : FileLayer::system();
    CGL_TRY_ASSIGN(const Target target, examine_target(layer, path.native(), options.force));
    FileState folder;
    const int error = -uninterrupted([&] { return layer.state(target.folder.c_str(), folder); });
    if (error != 0) return create_failure(path.native(), target.folder, error);
    if (folder.kind == FileKind::absent) return create_failure(path.native(), target.folder, ENOENT);
    return check_space(layer, path.native(), target.folder, options.expected_bytes);
  });
}

AtomicFile::AtomicFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile& AtomicFile::operator=(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path, const WriteOptions& options) {
  return catch_out_of_memory([&]() -> Result<AtomicFile> {
    FileLayer& layer = options.layer != nullptr ? *options.layer : FileLayer::system();
    CGL_TRY_ASSIGN(Target target, examine_target(layer, path.native(), options.force));
    auto state = std::make_unique<State>(layer, options, path.native(), std::move(target));
    state->buffer.resize(std::max<std::size_t>(1, options.buffer_bytes));
    CGL_TRY(state->create_partial());
    return AtomicFile(std::move(state));
  });
}

Status AtomicFile::append(std::span<const std::byte> bytes) {
  return catch_out_of_memory([&] { return state_->append(bytes); });
}

Status AtomicFile::append(std::string_view text) {
  return append(std::as_bytes(std::span(text.data(), text.size())));
}

Status AtomicFile::append_parts(std::span<const std::uint64_t> offsets, const MakePart& make) {
  return catch_out_of_memory([&] { return state_->append_parts(offsets, make); });
}

Status AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  return catch_out_of_memory([&] { return state_->write_at(offset, bytes); });
}

std::uint64_t AtomicFile::size() const noexcept {
  return state_->flushed + state_->buffered;
}

Status AtomicFile::commit() {
  return catch_out_of_memory([&] { return state_->commit(); });
}

void AtomicFile::discard() noexcept {
  state_->discard();
}

Status write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                             WriteOptions options) {
  options.expected_bytes = bytes.size();
  options.buffer_bytes = 1;  // the bytes are in memory already
  CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, options));
  CGL_TRY(file.append(bytes));
  return file.commit();
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view text, WriteOptions options) {
  return write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())), options);
}

}  // namespace cingulum
