// Where the bytes of Zarr hierarchies are: a folder of files or a zip archive, behind one interface of keys
// ("0/c/1/2"). A reading store opens keys; an output takes keys and makes them one new thing (new_hierarchy), or
// changes files of a folder that is there (existing_folder). Nothing here knows what the bytes mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/result.hpp"

namespace cingulum::zarr {

// The bytes behind one key. any thread
class StoredObject {
 public:
  virtual ~StoredObject() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Exactly to.size() bytes from `offset` on; what ends before is a failure of kind corrupt.
  [[nodiscard]] virtual Status read_at(std::uint64_t offset, std::span<std::byte> to) const = 0;
  // All of it in memory, where it lies there anyway (a stored entry of a mapped archive).
  [[nodiscard]] virtual std::optional<std::span<const std::byte>> in_memory() const { return std::nullopt; }
  // The file and the place in it where the bytes stand as they are, for reads that bypass the host.
  struct Extent {
    int descriptor = -1;  // open for reading while this object lives
    std::filesystem::path path;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] virtual std::optional<Extent> extent() const { return std::nullopt; }
  // The same for as long as nobody has changed or replaced it.
  [[nodiscard]] virtual std::string stamp() const = 0;
};

// Parts between slashes, none of them empty, "." or "..".
[[nodiscard]] Status check_key(const std::string& key);

// any thread
class Store {
 public:
  virtual ~Store() = default;
  // A folder, or a zip archive with a hierarchy at its root or in its one folder.
  [[nodiscard]] static Result<std::shared_ptr<const Store>> open(const std::filesystem::path& path);

  // Null where nothing is under the key. A key that leads out of the store (by "..", by a link) is a failure.
  [[nodiscard]] virtual Result<std::shared_ptr<const StoredObject>> open_object(const std::string& key) const = 0;
  // The stamp of what is under the key now, without opening it; empty where there is nothing.
  [[nodiscard]] virtual Result<std::string> stamp_of_key(const std::string& key) const = 0;
  // Keys and folders directly below `prefix` ("" is the root, else without a slash at its end), sorted, without prefix.
  struct Children {
    std::vector<std::string> keys;
    std::vector<std::string> folders;
  };
  [[nodiscard]] virtual Result<Children> children(const std::string& prefix) const = 0;
  // What messages call it, and the place on disk.
  [[nodiscard]] virtual const std::filesystem::path& path() const = 0;
  [[nodiscard]] virtual bool is_archive() const = 0;

  // The whole of a small object (metadata); absent where nothing is under the key.
  [[nodiscard]] Result<std::optional<std::string>> read_text(const std::string& key, std::uint64_t limit_bytes) const;
};

// One key on its way into an output, piece by piece: whole under its name after end(), else nothing of it is.
// one caller at a time
class KeyOutput {
 public:
  virtual ~KeyOutput() = default;
  [[nodiscard]] virtual Status append(std::span<const std::byte> bytes) = 0;
  [[nodiscard]] virtual Status end() = 0;
};

class StoreOutput {
 public:
  virtual ~StoreOutput() = default;  // without commit nothing is left of a new hierarchy
  // The bytes of one key, whole: `parts` one behind the other. any thread
  [[nodiscard]] virtual Status put(const std::string& key, std::span<const std::span<const std::byte>> parts) = 0;
  [[nodiscard]] Status put(const std::string& key, std::span<const std::byte> bytes) {
    return put(key, std::span(&bytes, 1));
  }
  [[nodiscard]] Status put_text(const std::string& key, std::string_view text) {
    return put(key, std::as_bytes(std::span(text)));
  }
  // Whether a key's bytes may come one after another; else it can only be put whole.
  [[nodiscard]] virtual bool takes_pieces() const { return false; }
  // Such a key, of `expected_bytes` at most; several may be open at a time, none when the output goes. any thread
  [[nodiscard]] virtual Result<std::unique_ptr<KeyOutput>> begin(const std::string& key, std::uint64_t expected_bytes) {
    (void)expected_bytes;
    return fail(ErrorKind::invalid_state, "key {}: it can only be put whole", key);
  }
  // Whether keys stand in the output in the order in which they were put, so that equal bytes need equal order.
  [[nodiscard]] virtual bool ordered() const { return false; }
  // A new hierarchy gets its name now.
  [[nodiscard]] virtual Status commit() = 0;
};

// A hierarchy that appears as a whole: a folder, or a zip archive where the name ends with .zip. What is there is
// replaced with options.force alone, and a folder only where it is a Zarr hierarchy.
[[nodiscard]] Result<std::unique_ptr<StoreOutput>> new_hierarchy(const std::filesystem::path& path,
                                                                 const WriteOptions& options);
// Single keys of a folder that is there: each is the old or the new one at any moment. commit() has nothing to do.
[[nodiscard]] Result<std::unique_ptr<StoreOutput>> existing_folder(const std::filesystem::path& path,
                                                                   const WriteOptions& options);

}  // namespace cingulum::zarr
