// A model of a disk for the tests of power failures: it takes recorded file calls (faulty_file_layer.hpp) one by one
// and tells what may be found afterwards, if the power fails now, under chosen names of one folder. Of what was not
// synced anything may have arrived: each change of a name or not, each write whole, by half, or not at all. Not used
// outside tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/faulty_file_layer.hpp"

namespace cingulum {

class DiskModel {
 public:
  static constexpr std::string_view absent = "(absent)";

  // The names that are asked for, whole paths; what is in their folder before the first call is told by put().
  explicit DiskModel(std::vector<std::string> names) : names_(std::move(names)), before_(names_.size()) {}

  void put(std::size_t name, std::string_view content) {
    File file;
    file.writes.push_back({0, {content.begin(), content.end()}});
    file.synced_writes = 1;
    before_[name] = files_.size();
    now_[names_[name]] = files_.size();
    files_.push_back(std::move(file));
  }

  void apply(const RecordedCall& call) {
    if (call.result < 0) return;
    switch (call.call) {
      case FileCall::create:
        open_[static_cast<int>(call.result)] = files_.size();
        change_name(call.path, files_.size());
        files_.emplace_back();
        break;
      case FileCall::write: {
        File& file = files_[open_.at(call.descriptor)];
        file.writes.push_back({file.append_offset, text_of(call)});
        file.append_offset += call.data.size();
        break;
      }
      case FileCall::write_at: files_[open_.at(call.descriptor)].writes.push_back({call.offset, text_of(call)}); break;
      case FileCall::sync: {
        File& file = files_[open_.at(call.descriptor)];
        file.synced_writes = file.writes.size();
        break;
      }
      case FileCall::close: open_.erase(call.descriptor); break;
      case FileCall::rename:
      case FileCall::rename_no_replace: {
        const std::size_t file = now_.at(call.path);
        change_name(call.path, std::nullopt);
        change_name(call.other, file);
        break;
      }
      case FileCall::link: change_name(call.other, now_.at(call.path)); break;
      case FileCall::unlink: change_name(call.path, std::nullopt); break;
      case FileCall::sync_folder: synced_changes_ = changes_.size(); break;
      default: break;
    }
  }

  // Every combination of contents that the names may have after a power failure now, in the order of the names.
  [[nodiscard]] std::set<std::vector<std::string>> possible_contents() const {
    std::set<std::vector<std::string>> all;
    const std::size_t pending = changes_.size() - synced_changes_;
    for (std::size_t arrived = 0; arrived < (std::size_t{1} << pending); ++arrived) {
      std::vector<std::optional<std::size_t>> found = before_;
      for (std::size_t i = 0; i < changes_.size(); ++i) {
        if (i < synced_changes_ || ((arrived >> (i - synced_changes_)) & 1U) != 0) {
          found[changes_[i].name] = changes_[i].file;
        }
      }
      std::set<std::vector<std::string>> combinations = {{}};
      for (const std::optional<std::size_t>& file : found) {
        const std::set<std::string> contents =
            file ? contents_of(files_[*file]) : std::set<std::string>{std::string(absent)};
        std::set<std::vector<std::string>> longer;
        for (std::vector<std::string> combination : combinations) {
          combination.emplace_back();
          for (const std::string& content : contents) {
            combination.back() = content;
            longer.insert(combination);
          }
        }
        combinations = std::move(longer);
      }
      all.merge(combinations);
    }
    return all;
  }

 private:
  struct Write {
    std::uint64_t offset;
    std::string data;
  };
  struct File {
    std::vector<Write> writes;
    std::size_t synced_writes = 0;
    std::uint64_t append_offset = 0;
  };
  // One of the names leads to another file, or to none.
  struct Change {
    std::size_t name;
    std::optional<std::size_t> file;
  };

  static std::string text_of(const RecordedCall& call) {
    return {reinterpret_cast<const char*>(call.data.data()), call.data.size()};
  }

  void change_name(const std::string& path, std::optional<std::size_t> file) {
    if (file) {
      now_[path] = *file;
    } else {
      now_.erase(path);
    }
    const auto name = std::find(names_.begin(), names_.end(), path);
    if (name != names_.end()) changes_.push_back({static_cast<std::size_t>(name - names_.begin()), file});
  }

  // `arrived` says for each write after the synced ones: 0 not at all, 1 its first half, 2 whole.
  [[nodiscard]] static std::string content_of(const File& file, const std::vector<int>& arrived) {
    std::string text;
    for (std::size_t i = 0; i < file.writes.size(); ++i) {
      std::size_t count = file.writes[i].data.size();
      if (i >= file.synced_writes) count = count * static_cast<std::size_t>(arrived[i - file.synced_writes]) / 2;
      if (count == 0) continue;
      text.resize(std::max(text.size(), static_cast<std::size_t>(file.writes[i].offset) + count));
      std::memcpy(text.data() + file.writes[i].offset, file.writes[i].data.data(), count);
    }
    return text;
  }

  [[nodiscard]] static std::set<std::string> contents_of(const File& file) {
    const std::size_t pending = file.writes.size() - file.synced_writes;
    std::set<std::string> contents;
    constexpr std::size_t most_in_full = 6;
    if (pending > most_in_full) {
      // Too many for all: one at a time is lost, or all.
      contents.insert(content_of(file, std::vector<int>(pending, 0)));
      for (std::size_t lost = 0; lost <= pending; ++lost) {
        std::vector<int> arrived(pending, 2);
        if (lost < pending) arrived[lost] = 0;
        contents.insert(content_of(file, arrived));
      }
      return contents;
    }
    std::vector<int> arrived(pending, 0);
    while (true) {
      contents.insert(content_of(file, arrived));
      std::size_t i = 0;
      while (i < pending && arrived[i] == 2) arrived[i++] = 0;
      if (i == pending) return contents;
      ++arrived[i];
    }
  }

  std::vector<std::string> names_;
  std::vector<std::optional<std::size_t>> before_;
  std::vector<File> files_;
  std::map<int, std::size_t> open_;
  std::map<std::string, std::size_t> now_;  // as the running program sees it
  std::vector<Change> changes_;
  std::size_t synced_changes_ = 0;
};

}  // namespace cingulum
