#include "ring/telemetry/telemetry_page.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace cingulum::ring {
namespace {

constexpr std::uint64_t page_magic = 0x31474e495247'4c43ULL;  // "CLGRING1" as bytes
constexpr std::size_t header_bytes = sizeof(TelemetryPageHeader);
constexpr std::size_t largest_page = std::size_t{256} << 20U;
constexpr std::string_view page_suffix = ".ring";

// FNV-1a over words: finds a copy that was put together from two contents.
std::uint64_t checksum_of(std::string_view content) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char letter : content) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ULL;
  return hash;
}

std::uint64_t& word_at(std::byte* memory, std::size_t offset) {
  return *reinterpret_cast<std::uint64_t*>(memory + offset);
}
std::uint64_t load(std::byte* memory, std::size_t offset, std::memory_order order = std::memory_order_relaxed) {
  return std::atomic_ref(word_at(memory, offset)).load(order);
}
void store(std::byte* memory, std::size_t offset, std::uint64_t value,
           std::memory_order order = std::memory_order_relaxed) {
  std::atomic_ref(word_at(memory, offset)).store(value, order);
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string system_text(int code) {
  return std::system_category().message(code);
}

bool is_alive(std::int64_t process) {
  return process > 0 && (::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM);
}

struct Mapping {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;

  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (memory != nullptr) ::munmap(memory, bytes);
  }
};

Status map_page(const std::filesystem::path& path, Mapping& mapping) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return fail(errno == ENOENT ? ErrorKind::not_found : ErrorKind::io, "opening the telemetry page {}: {}",
                path.string(), system_text(errno));
  }
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return fail(ErrorKind::corrupt, "the telemetry page {} is not a file", path.string());
  }
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  if (bytes < header_bytes || bytes > largest_page + header_bytes) {
    return fail(ErrorKind::corrupt, "{} is not a telemetry page: {} bytes", path.string(), bytes);
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorKind::io, "mapping the telemetry page {}: {}", path.string(), system_text(errno));
  }
  mapping.memory = static_cast<std::byte*>(memory);
  mapping.bytes = bytes;
  if (load(mapping.memory, offsetof(TelemetryPageHeader, magic)) != page_magic) {
    return fail(ErrorKind::corrupt, "{} is not a telemetry page of this version", path.string());
  }
  const std::uint64_t capacity = load(mapping.memory, offsetof(TelemetryPageHeader, capacity));
  if (capacity % 8 != 0 || capacity > bytes - header_bytes) {
    return fail(ErrorKind::corrupt, "the telemetry page {} is damaged: room for {} bytes in a file of {}",
                path.string(), capacity, bytes);
  }
  return {};
}

}  // namespace

Result<TelemetryPage> TelemetryPage::create(const std::filesystem::path& path, std::size_t capacity) {
  capacity = std::clamp<std::size_t>((capacity + 7) / 8 * 8, 4096, largest_page);
  {
    Mapping old;
    if (map_page(path, old)) {
      const auto writer = static_cast<std::int64_t>(load(old.memory, offsetof(TelemetryPageHeader, process)));
      if (writer != ::getpid() && is_alive(writer)) {
        return fail(ErrorKind::already_exists, "the telemetry page {} belongs to process {}, which runs", path.string(),
                    writer);
      }
    } else if (std::filesystem::exists(std::filesystem::symlink_status(path))) {
      return fail(ErrorKind::already_exists, "{} exists and is not a telemetry page; give another name", path.string());
    }
  }
  for (const TelemetryPageFile& file : list_telemetry_pages(path.parent_path())) {
    std::error_code ignored;
    if (!file.alive) std::filesystem::remove(file.path, ignored);
  }
  // Made under another name and renamed, so that whoever opens it finds a whole header.
  const std::filesystem::path made = path.string() + ".new-" + std::to_string(::getpid());
  const File file(::open(made.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return fail(ErrorKind::io, "making the telemetry page {}: {}", path.string(), system_text(errno));
  const std::size_t bytes = header_bytes + capacity;
  void* memory = MAP_FAILED;
  // Allocated now: a full disk must not become a signal at the first write.
  int code = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (code == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) code = errno;
  }
  if (code == 0) {
    TelemetryPageHeader header;
    header.magic = page_magic;
    header.process = static_cast<std::uint64_t>(::getpid());
    header.capacity = capacity;
    header.checksum = checksum_of("");
    std::memcpy(memory, &header, sizeof(header));
    if (std::rename(made.c_str(), path.c_str()) != 0) {
      code = errno;
      ::munmap(memory, bytes);
    }
  }
  if (code != 0) {
    ::unlink(made.c_str());
    return fail(ErrorKind::io, "making the telemetry page {}: {}", path.string(), system_text(code));
  }
  TelemetryPage page;
  page.path_ = path;
  page.memory_ = static_cast<std::byte*>(memory);
  page.mapped_bytes_ = bytes;
  return page;
}

TelemetryPage::TelemetryPage(TelemetryPage&& other) noexcept
    : path_(std::move(other.path_)),
      memory_(std::exchange(other.memory_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

TelemetryPage& TelemetryPage::operator=(TelemetryPage&& other) noexcept {
  if (this == &other) return *this;
  if (memory_ != nullptr) ::munmap(memory_, mapped_bytes_);
  // The name is given up only when the other page has another one.
  if (memory_ != nullptr && path_ != other.path_) ::unlink(path_.c_str());
  path_ = std::move(other.path_);
  memory_ = std::exchange(other.memory_, nullptr);
  mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
  return *this;
}

TelemetryPage::~TelemetryPage() {
  close();
}

void TelemetryPage::close() noexcept {
  if (memory_ == nullptr) return;
  ::munmap(memory_, mapped_bytes_);
  memory_ = nullptr;
  ::unlink(path_.c_str());
}

Status TelemetryPage::write(std::string_view content) {
  if (memory_ == nullptr) return fail(ErrorKind::invalid_state, "writing a telemetry page that was given away");
  if (content.size() > mapped_bytes_ - header_bytes) {
    if (content.size() > largest_page / 2) {
      return fail(ErrorKind::invalid_argument, "writing the telemetry page {}: {} bytes are more than a page holds",
                  path_.string(), content.size());
    }
    CGL_TRY_ASSIGN(*this, create(path_, 2 * content.size()));
  }
  // Readers pair the release below with their acquire of an even sequence, and see the odd one, which is stored before
  // any word of the content, when they look again: the content's words are released one by one for that.
  const std::uint64_t sequence = load(memory_, offsetof(TelemetryPageHeader, sequence));
  store(memory_, offsetof(TelemetryPageHeader, sequence), sequence + 1);
  store(memory_, offsetof(TelemetryPageHeader, bytes), content.size(), std::memory_order_release);
  store(memory_, offsetof(TelemetryPageHeader, checksum), checksum_of(content), std::memory_order_release);
  for (std::size_t i = 0; i < content.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, content.data() + i, std::min<std::size_t>(8, content.size() - i));
    store(memory_, header_bytes + i, word, std::memory_order_release);
  }
  store(memory_, offsetof(TelemetryPageHeader, sequence), sequence + 2, std::memory_order_release);
  return {};
}

Result<std::string> read_telemetry_page(const std::filesystem::path& path) {
  Mapping mapping;
  CGL_TRY(map_page(path, mapping));
  std::byte* const memory = mapping.memory;
  const std::uint64_t capacity = load(memory, offsetof(TelemetryPageHeader, capacity));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  std::vector<std::uint64_t> words;
  bool torn = true;
  while (torn) {
    const std::uint64_t before = load(memory, offsetof(TelemetryPageHeader, sequence), std::memory_order_acquire);
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
    if (before % 2 == 0) {
      bytes = load(memory, offsetof(TelemetryPageHeader, bytes), std::memory_order_acquire);
      checksum = load(memory, offsetof(TelemetryPageHeader, checksum), std::memory_order_acquire);
      words.resize(static_cast<std::size_t>(std::min(bytes, capacity) + 7) / 8);
      for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = load(memory, header_bytes + 8 * i, std::memory_order_acquire);
      }
      torn = load(memory, offsetof(TelemetryPageHeader, sequence)) != before;
    }
    if (!torn) {
      const auto size = static_cast<std::size_t>(bytes);
      if (bytes > capacity) {
        return fail(ErrorKind::corrupt, "the telemetry page {} is damaged: {} bytes where {} fit", path.string(), bytes,
                    capacity);
      }
      std::string content(size, '\0');
      if (size > 0) std::memcpy(content.data(), words.data(), size);
      if (checksum_of(content) != checksum) {
        return fail(ErrorKind::corrupt, "the telemetry page {} is damaged: its checksum does not fit", path.string());
      }
      return content;
    }
    if (std::chrono::steady_clock::now() > give_up) break;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return fail(ErrorKind::unavailable, "the telemetry page {} is being written and does not come to rest",
              path.string());
}

Result<std::filesystem::path> telemetry_folder(std::string_view xdg_runtime_dir, bool create) {
  std::filesystem::path folder = xdg_runtime_dir.empty()
                                     ? std::filesystem::path(fmt::format("/tmp/cingulum-{}", ::getuid()))
                                     : std::filesystem::path(xdg_runtime_dir) / "cingulum";
  if (create && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorKind::io, "making the folder {} for telemetry: {}", folder.string(), system_text(errno));
  }
  struct stat facts = {};
  if (::lstat(folder.c_str(), &facts) == 0 && (!S_ISDIR(facts.st_mode) || facts.st_uid != ::getuid())) {
    return fail(ErrorKind::io, "{} is not a folder of this user's; give a path for the telemetry page",
                folder.string());
  }
  return folder;
}

std::vector<TelemetryPageFile> list_telemetry_pages(const std::filesystem::path& folder) {
  std::vector<TelemetryPageFile> pages;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    if (entry.path().extension() != page_suffix) continue;
    Mapping mapping;
    if (!map_page(entry.path(), mapping)) continue;
    const auto process = static_cast<std::int64_t>(load(mapping.memory, offsetof(TelemetryPageHeader, process)));
    pages.push_back({entry.path(), process, is_alive(process)});
  }
  std::sort(pages.begin(), pages.end(),
            [](const auto& a, const auto& b) { return std::pair(a.process, a.path) < std::pair(b.process, b.path); });
  return pages;
}

}  // namespace cingulum::ring
