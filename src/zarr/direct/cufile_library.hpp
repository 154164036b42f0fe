// The shim of cuFile, NVIDIA's library of GPUDirect Storage: reads from files into device memory past the host. Opened
// at run time; a build needs neither its headers nor CUDA, so that a library that plays its part serves the tests.
// cuFile is asked to work natively or not at all: its own compatibility mode, which reads through the host, is slower
// than the host engine and hides that nothing is direct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace cingulum::zarr {

struct CufileOptions {
  std::optional<std::filesystem::path> library;
  bool allow_compatibility = false;  // and force it: for a test of equality where nothing is native
};

// What the driver of cuFile says of itself.
struct CufileDriver {
  int version = 0;                          // 1160 is 1.16
  unsigned nvfs_major = 0, nvfs_minor = 0;  // of the module nvidia-fs; 0.0: it is not there
  bool p2pdma = false;                      // the kernel's own way, without that module
  bool nvme = false;                        // targets for which nvidia-fs is ready
  [[nodiscard]] std::string version_text() const;
};

class CufileFile;
class CufileMemory;

// any thread
class CufileLibrary {
 public:
  // Once in a process for each file that is named: the driver stays open.
  [[nodiscard]] static Result<std::shared_ptr<const CufileLibrary>> open(const CufileOptions& options);
  ~CufileLibrary();
  CufileLibrary(const CufileLibrary&) = delete;
  CufileLibrary& operator=(const CufileLibrary&) = delete;

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const CufileDriver& driver() const;

  // The file behind an open descriptor, opened anew past the page cache. Fails where cuFile cannot read it natively.
  [[nodiscard]] Result<std::unique_ptr<CufileFile>> register_file(int descriptor) const;
  [[nodiscard]] Result<std::unique_ptr<CufileMemory>> register_memory(void* device_memory, std::size_t bytes) const;

 private:
  friend class CufileFile;
  friend class CufileMemory;
  struct Functions;
  explicit CufileLibrary(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

// Device memory that cuFile has mapped. Given back by the destructor.
class CufileMemory {
 public:
  CufileMemory(const CufileLibrary& library, void* memory) : library_(library), memory_(memory) {}
  ~CufileMemory();
  CufileMemory(const CufileMemory&) = delete;
  CufileMemory& operator=(const CufileMemory&) = delete;
  [[nodiscard]] void* address() const { return memory_; }

 private:
  const CufileLibrary& library_;
  void* memory_;
};

// any thread
class CufileFile {
 public:
  CufileFile(const CufileLibrary& library, int descriptor, void* handle)
      : library_(library), descriptor_(descriptor), handle_(handle) {}
  ~CufileFile();
  CufileFile(const CufileFile&) = delete;
  CufileFile& operator=(const CufileFile&) = delete;

  // Bytes that arrived: fewer than were asked for at the end of the file. Offsets and sizes are multiples of 4096.
  [[nodiscard]] Result<std::size_t> read(const CufileMemory& to, std::uint64_t to_offset, std::uint64_t file_offset,
                                         std::size_t bytes) const;

 private:
  const CufileLibrary& library_;
  int descriptor_;
  void* handle_;
};

}  // namespace cingulum::zarr
