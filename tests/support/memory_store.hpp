// A Zarr hierarchy in memory: keys and their bytes, read through the interface of stores and written through that of
// outputs. For tests that damage what was stored thousands of times, and for fuzzing. Not used outside tests.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "formats/corrupt.hpp"
#include "zarr/store.hpp"

namespace cingulum::testing {

using StoredKeys = std::map<std::string, std::vector<std::byte>>;

class MemoryStore final : public zarr::Store {
 public:
  explicit MemoryStore(StoredKeys keys) : keys_(std::move(keys)) {}

  // What a folder holds.
  [[nodiscard]] static StoredKeys keys_of(const std::filesystem::path& folder) {
    StoredKeys keys;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      const auto bytes = std::as_bytes(std::span(text));
      keys[entry.path().lexically_relative(folder).native()].assign(bytes.begin(), bytes.end());
    }
    return keys;
  }

  [[nodiscard]] StoredKeys& keys() { return keys_; }

  [[nodiscard]] Result<std::shared_ptr<const zarr::StoredObject>> open_object(const std::string& key) const override {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return std::shared_ptr<const zarr::StoredObject>();
    return std::make_shared<const Object>(found->second);
  }
  [[nodiscard]] Result<std::string> stamp_of_key(const std::string& key) const override {
    return std::string(keys_.contains(key) ? "there" : "");
  }
  [[nodiscard]] Result<Children> children(const std::string&) const override { return Children{}; }
  [[nodiscard]] const std::filesystem::path& path() const override { return path_; }
  [[nodiscard]] bool is_archive() const override { return false; }

 private:
  class Object final : public zarr::StoredObject {
   public:
    explicit Object(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> to) const override {
      if (offset > bytes_.size() || to.size() > bytes_.size() - offset) return corrupt("it ends early");
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
      return {};
    }
    [[nodiscard]] std::string stamp() const override { return "there"; }

   private:
    std::vector<std::byte> bytes_;
  };

  StoredKeys keys_;
  std::filesystem::path path_ = "memory.zarr";
};

class MemoryOutput final : public zarr::StoreOutput {
 public:
  [[nodiscard]] Status put(const std::string& key, std::span<const std::span<const std::byte>> parts) override {
    std::vector<std::byte> bytes;
    for (const auto part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
    const std::lock_guard lock(mutex_);
    keys_[key] = std::move(bytes);
    return {};
  }
  [[nodiscard]] Status commit() override { return {}; }
  [[nodiscard]] StoredKeys& keys() { return keys_; }

 private:
  std::mutex mutex_;
  StoredKeys keys_;
};

}  // namespace cingulum::testing
