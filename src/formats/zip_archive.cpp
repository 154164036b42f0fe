#include "formats/zip_archive.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "formats/crc32.hpp"
#include "formats/zip_format.hpp"

namespace cingulum {
namespace {

using Bytes = std::span<const std::byte>;
using zip::in_extra16;
using zip::in_extra32;
using zip::local_bytes;

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t central_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::size_t central_bytes = 46;
constexpr std::size_t end_bytes = 22;
constexpr std::size_t end64_bytes = 56;
constexpr std::size_t locator64_bytes = 20;
constexpr std::uint64_t largest_entry = std::uint64_t{1} << 40U;

constexpr std::uint16_t flag_encrypted = 1U << 0U;
constexpr std::uint16_t flag_descriptor = 1U << 3U;  // sizes and CRC follow the data
constexpr std::uint16_t flag_strong_encryption = 1U << 6U;
constexpr std::uint16_t flag_masked = 1U << 13U;

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

// The end record whose comment reaches exactly to the end of the file. Were there two, readers would disagree.
Result<std::size_t> find_end_record(Bytes file) {
  if (file.size() < end_bytes) {
    return corrupt("{} bytes are too few for a zip archive, whose end record takes {}", file.size(), end_bytes);
  }
  const std::size_t furthest = std::min<std::size_t>(file.size(), end_bytes + 0xffff);
  std::optional<std::size_t> found;
  for (std::size_t back = end_bytes; back <= furthest; ++back) {
    const std::size_t at = file.size() - back;
    if (load<std::uint32_t>(file, at) != end_signature) continue;
    if (load<std::uint16_t>(file, at + 20) != back - end_bytes) continue;
    if (found) return corrupt("zip: two end records are possible, at bytes {} and {}", at, *found);
    found = at;
  }
  if (!found)
    return corrupt("zip: no end record in the last {} of {} bytes: the file is cut off or damaged", furthest,
                   file.size());
  return *found;
}

Result<Directory> find_directory(Bytes file) {
  CGL_TRY_ASSIGN(const std::size_t end, find_end_record(file));
  const auto disk = load<std::uint16_t>(file, end + 4);
  const auto start_disk = load<std::uint16_t>(file, end + 6);
  const auto disk_entries = load<std::uint16_t>(file, end + 8);
  const auto entries = load<std::uint16_t>(file, end + 10);
  const auto bytes = load<std::uint32_t>(file, end + 12);
  const auto offset = load<std::uint32_t>(file, end + 16);
  if (disk != start_disk || disk_entries != entries || (disk != 0 && disk != in_extra16)) {
    return corrupt("zip: archives of several disks are not supported");
  }
  Directory directory{.offset = offset, .bytes = bytes, .entries = entries};
  std::uint64_t directory_end = end;
  const bool has_locator =
      end >= locator64_bytes && load<std::uint32_t>(file, end - locator64_bytes) == locator64_signature;
  const bool needs_locator = entries == in_extra16 || bytes == in_extra32 || offset == in_extra32 || disk == in_extra16;
  if (needs_locator && !has_locator) return corrupt("zip: the end record refers to a zip64 record that is not there");
  if (has_locator) {
    const std::size_t locator = end - locator64_bytes;
    const auto at = load<std::uint64_t>(file, locator + 8);
    if (load<std::uint32_t>(file, locator + 4) != 0 || load<std::uint32_t>(file, locator + 16) > 1) {
      return corrupt("zip: archives of several disks are not supported");
    }
    if (locator < end64_bytes || at > locator - end64_bytes ||
        load<std::uint32_t>(file, static_cast<std::size_t>(at)) != end64_signature) {
      return corrupt("zip: no zip64 end record at byte {}, where the locator says it is", at);
    }
    const auto record = static_cast<std::size_t>(at);
    if (load<std::uint64_t>(file, record + 4) != locator - record - 12) {
      return corrupt("zip: the zip64 end record says {} bytes, its place allows {}",
                     load<std::uint64_t>(file, record + 4), locator - record - 12);
    }
    directory.entries = load<std::uint64_t>(file, record + 32);
    directory.bytes = load<std::uint64_t>(file, record + 40);
    directory.offset = load<std::uint64_t>(file, record + 48);
    if (load<std::uint32_t>(file, record + 16) != 0 || load<std::uint32_t>(file, record + 20) != 0 ||
        load<std::uint64_t>(file, record + 24) != directory.entries) {
      return corrupt("zip: archives of several disks are not supported");
    }
    if ((entries != in_extra16 && entries != directory.entries) || (bytes != in_extra32 && bytes != directory.bytes) ||
        (offset != in_extra32 && offset != directory.offset)) {
      return corrupt("zip: the end record and its zip64 record contradict each other");
    }
    directory_end = at;
  }
  // Exactly there: neither bytes before the archive that shift it nor a gap in which something could hide.
  if (directory.offset > directory_end || directory.bytes != directory_end - directory.offset) {
    return corrupt("zip: the directory of {} bytes at byte {} does not end at byte {}, where the end record begins",
                   directory.bytes, directory.offset, directory_end);
  }
  if (directory.entries > directory.bytes / central_bytes) {
    return corrupt("zip: {} entries do not fit a directory of {} bytes", directory.entries, directory.bytes);
  }
  return directory;
}

// "a/b.float32" stays within the folder on every system.
Status check_name(std::string_view name) {
  if (name.empty()) return corrupt("zip: an entry has no name");
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return corrupt("zip: an entry's name holds control characters");
    if (c == '\\') return corrupt("zip: entry '{}': a backslash in the name is not allowed", name);
    if (c == ':') return corrupt("zip: entry '{}': a colon in the name is not allowed", name);
  }
  if (name.front() == '/') return corrupt("zip: entry '{}': absolute names are not allowed", name);
  std::string_view rest = name.back() == '/' ? name.substr(0, name.size() - 1) : name;
  while (true) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..") {
      return corrupt("zip: entry '{}': the name leaves its folder or is not plain", name);
    }
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

// Replaces what the 32-bit fields could not hold by the numbers of the zip64 extra field, which has exactly those that
// are marked, in this order.
Status apply_zip64(Bytes extra, std::string_view name, std::vector<std::uint64_t*> marked) {
  std::size_t at = 0;
  bool seen = false;
  while (at < extra.size()) {
    if (extra.size() - at < 4) {
      // Some writers leave padding; it may only be zeros.
      for (; at < extra.size(); ++at) {
        if (extra[at] != std::byte{0}) return corrupt("zip: entry '{}': its extra field is malformed", name);
      }
      break;
    }
    const auto id = load<std::uint16_t>(extra, at);
    const std::size_t size = load<std::uint16_t>(extra, at + 2);
    if (size > extra.size() - at - 4) return corrupt("zip: entry '{}': its extra field is malformed", name);
    if (id == 1) {
      if (seen) return corrupt("zip: entry '{}': two zip64 fields", name);
      seen = true;
      if (size < marked.size() * 8) {
        return corrupt("zip: entry '{}': its zip64 field of {} bytes lacks numbers", name, size);
      }
      for (std::size_t i = 0; i < marked.size(); ++i) *marked[i] = load<std::uint64_t>(extra, at + 4 + i * 8);
    }
    at += 4 + size;
  }
  if (!seen && !marked.empty()) return corrupt("zip: entry '{}': its zip64 field is missing", name);
  return {};
}

struct Headers {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t time = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0;
  std::uint64_t bytes = 0;
};

Headers common_fields(Bytes file, std::size_t flags_at) {
  return {.flags = load<std::uint16_t>(file, flags_at),
          .method = load<std::uint16_t>(file, flags_at + 2),
          .time = load<std::uint32_t>(file, flags_at + 4),
          .crc = load<std::uint32_t>(file, flags_at + 8),
          .packed = load<std::uint32_t>(file, flags_at + 12),
          .bytes = load<std::uint32_t>(file, flags_at + 16)};
}

std::string_view text_at(Bytes file, std::size_t offset, std::size_t size) {
  return {reinterpret_cast<const char*>(file.data() + offset), size};
}

// Compares the local header with the directory and finds where the data lie.
Status check_local_header(Bytes file, std::uint64_t header_offset, const Headers& central, std::uint64_t data_end,
                          ZipEntry& entry) {
  if (header_offset > data_end || data_end - header_offset < local_bytes ||
      load<std::uint32_t>(file, static_cast<std::size_t>(header_offset)) != local_signature) {
    return corrupt("zip: entry '{}': no local header at byte {}", entry.name, header_offset);
  }
  const auto at = static_cast<std::size_t>(header_offset);
  Headers local = common_fields(file, at + 6);
  const std::size_t name_bytes = load<std::uint16_t>(file, at + 26);
  const std::size_t extra_bytes = load<std::uint16_t>(file, at + 28);
  if (name_bytes + extra_bytes > data_end - header_offset - local_bytes) {
    return corrupt("zip: entry '{}': its local header reaches into the directory", entry.name);
  }
  if (text_at(file, at + local_bytes, name_bytes) != entry.name) {
    return corrupt("zip: entry '{}': the local header has another name", entry.name);
  }
  std::vector<std::uint64_t*> marked;
  if (local.bytes == in_extra32) marked.push_back(&local.bytes);
  if (local.packed == in_extra32) marked.push_back(&local.packed);
  CGL_TRY(apply_zip64(file.subspan(at + local_bytes + name_bytes, extra_bytes), entry.name, std::move(marked)));
  if (local.flags != central.flags || local.method != central.method || local.time != central.time) {
    return corrupt("zip: entry '{}': flags, method or time differ between local header and directory", entry.name);
  }
  const bool described_later = (local.flags & flag_descriptor) != 0;
  const bool left_open = described_later && local.crc == 0 && local.packed == 0 && local.bytes == 0;
  if (!left_open && (local.crc != central.crc || local.packed != central.packed || local.bytes != central.bytes)) {
    return corrupt("zip: entry '{}': sizes or CRC differ between local header ({}, {}) and directory ({}, {})",
                   entry.name, local.packed, local.bytes, central.packed, central.bytes);
  }
  entry.offset = header_offset + local_bytes + name_bytes + extra_bytes;
  if (entry.packed_bytes > data_end - entry.offset) {
    return corrupt("zip: entry '{}': {} bytes at byte {} reach beyond byte {}, where the directory begins", entry.name,
                   entry.packed_bytes, entry.offset, data_end);
  }
  return {};
}

struct DirectoryEntry {
  ZipEntry entry;
  std::uint64_t header_offset = 0;
  std::size_t next = 0;  // where the directory goes on
};

// The entry of the directory at byte `at`, its local header compared with it.
Result<DirectoryEntry> read_entry(std::span<const std::byte> file, const Directory& directory, std::uint64_t index,
                                  std::size_t at) {
  const auto end = static_cast<std::size_t>(directory.offset + directory.bytes);
  if (end - at < central_bytes || load<std::uint32_t>(file, at) != central_signature) {
    return corrupt("zip: entry {} of {} of the directory is damaged, at byte {}", index, directory.entries, at);
  }
  const Headers fields = common_fields(file, at + 8);
  const std::size_t name_bytes = load<std::uint16_t>(file, at + 28);
  const std::size_t extra_bytes = load<std::uint16_t>(file, at + 30);
  const std::size_t comment_bytes = load<std::uint16_t>(file, at + 32);
  const auto made_by = load<std::uint16_t>(file, at + 4);
  const auto attributes = load<std::uint32_t>(file, at + 38);
  if (name_bytes + extra_bytes + comment_bytes > end - at - central_bytes) {
    return corrupt("zip: entry {} reaches beyond the directory", index);
  }
  DirectoryEntry result;
  ZipEntry& entry = result.entry;
  entry.name = std::string(text_at(file, at + central_bytes, name_bytes));
  CGL_TRY(check_name(entry.name));
  Headers central = fields;
  std::uint64_t& header_offset = result.header_offset;
  header_offset = load<std::uint32_t>(file, at + 42);
  std::uint64_t disk = load<std::uint16_t>(file, at + 34);
  std::vector<std::uint64_t*> marked;
  if (central.bytes == in_extra32) marked.push_back(&central.bytes);
  if (central.packed == in_extra32) marked.push_back(&central.packed);
  if (header_offset == in_extra32) marked.push_back(&header_offset);
  CGL_TRY(apply_zip64(file.subspan(at + central_bytes + name_bytes, extra_bytes), entry.name, std::move(marked)));
  result.next = at + central_bytes + name_bytes + extra_bytes + comment_bytes;

  if ((fields.flags & (flag_encrypted | flag_strong_encryption | flag_masked)) != 0) {
    return corrupt("zip: entry '{}' is encrypted", entry.name);
  }
  if (fields.method != zip::method_stored && fields.method != zip::method_deflated) {
    return corrupt("zip: entry '{}': method {} is not supported (known: 0 stored, 8 deflated)", entry.name,
                   fields.method);
  }
  if (disk != 0) return corrupt("zip: entry '{}' lies on disk {}", entry.name, disk);
  constexpr unsigned unix_maker = 3;
  constexpr std::uint32_t unix_type = 0170000;
  constexpr std::uint32_t unix_link = 0120000;
  if (made_by >> 8U == unix_maker && ((attributes >> 16U) & unix_type) == unix_link) {
    return corrupt("zip: entry '{}' is a symbolic link", entry.name);
  }
  entry.deflated = fields.method == zip::method_deflated;
  entry.bytes = central.bytes;
  entry.packed_bytes = central.packed;
  entry.crc = fields.crc;
  if (entry.bytes > largest_entry) {
    return corrupt("zip: entry '{}': {} bytes are more than the limit of 1 TB", entry.name, entry.bytes);
  }
  if (!entry.deflated && entry.bytes != entry.packed_bytes) {
    return corrupt("zip: entry '{}' is stored, but its sizes differ: {} and {}", entry.name, entry.packed_bytes,
                   entry.bytes);
  }
  CGL_TRY(check_local_header(file, header_offset, central, directory.offset, entry));
  return result;
}

struct EntryRange {
  std::uint64_t begin;
  std::uint64_t end;
  std::size_t entry;
};

Status check_no_overlap(std::vector<EntryRange> ranges, const std::vector<ZipEntry>& entries) {
  std::sort(ranges.begin(), ranges.end(), [](const EntryRange& a, const EntryRange& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) {
      return corrupt("zip: entries '{}' and '{}' overlap at byte {}", entries[ranges[i - 1].entry].name,
                     entries[ranges[i].entry].name, ranges[i].begin);
    }
  }
  return {};
}

// Folders are empty, and no name is a file's and a folder's.
Status check_folders(const std::vector<ZipEntry>& entries, const std::unordered_set<std::string>& names) {
  for (const ZipEntry& entry : entries) {
    if (entry.name.back() == '/') {
      if (entry.bytes != 0) return corrupt("zip: the folder '{}' has content", entry.name);
      continue;
    }
    if (names.contains(entry.name + "/")) return corrupt("zip: '{}' is a file and a folder", entry.name);
    for (std::size_t slash = entry.name.find('/'); slash != std::string::npos;
         slash = entry.name.find('/', slash + 1)) {
      if (names.contains(entry.name.substr(0, slash))) {
        return corrupt("zip: '{}' is a file and a folder", entry.name.substr(0, slash));
      }
    }
  }
  return {};
}

}  // namespace

bool looks_like_zip(std::span<const std::byte> file) {
  if (file.size() < 4) return false;
  const auto signature = load<std::uint32_t>(file, 0);
  return signature == local_signature || signature == end_signature || signature == end64_signature;
}

Result<std::vector<ZipEntry>> read_zip_directory(std::span<const std::byte> file) {
  CGL_TRY_ASSIGN(const Directory directory, find_directory(file));
  std::vector<ZipEntry> entries;
  std::vector<EntryRange> ranges;
  std::unordered_set<std::string> names;
  std::uint64_t inflated_bytes = 0;
  auto at = static_cast<std::size_t>(directory.offset);
  const auto end = static_cast<std::size_t>(directory.offset + directory.bytes);
  for (std::uint64_t index = 0; index < directory.entries; ++index) {
    CGL_TRY_ASSIGN(DirectoryEntry found, read_entry(file, directory, index, at));
    ZipEntry& entry = found.entry;
    at = found.next;
    if (entry.deflated) inflated_bytes += entry.bytes;
    // Also the limit on memory: what was packed with zeros must be unpacked by the user first.
    if (zip::unpacks_to_too_much(inflated_bytes, file.size())) {
      return corrupt(
          "zip: entry '{}': the deflated entries say they unpack to {} bytes or more, far over {} times the file's {}; "
          "unpack it into a folder if this is meant",
          entry.name, inflated_bytes, zip::largest_ratio, file.size());
    }
    if (!names.insert(entry.name).second) return corrupt("zip: two entries have the name '{}'", entry.name);
    ranges.push_back({.begin = found.header_offset, .end = entry.offset + entry.packed_bytes, .entry = entries.size()});
    entries.push_back(std::move(entry));
  }
  if (at != end)
    return corrupt("zip: the directory has {} bytes more than its {} entries", end - at, directory.entries);
  CGL_TRY(check_no_overlap(std::move(ranges), entries));
  CGL_TRY(check_folders(entries, names));
  std::erase_if(entries, [](const ZipEntry& entry) { return entry.name.back() == '/'; });
  return entries;
}

std::span<const std::byte> packed_bytes(std::span<const std::byte> file, const ZipEntry& entry) {
  return file.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.packed_bytes));
}

Status check_crc(const ZipEntry& entry, std::uint32_t found) {
  if (found == entry.crc) return {};
  return corrupt("zip: entry '{}' is damaged: its CRC-32 is {:08x}, the directory says {:08x}", entry.name, found,
                 entry.crc);
}

Result<std::vector<std::byte>> inflate_entry(std::span<const std::byte> file, const ZipEntry& entry) {
  Bytes rest = packed_bytes(file, entry);
  // 80 kB of tables: not on the stack.
  const auto state = std::make_unique<inflate_state>();
  isal_inflate_init(state.get());
  state->crc_flag = ISAL_DEFLATE;
  std::vector<std::byte> content;
  std::size_t filled = 0;
  constexpr std::size_t step = std::size_t{1} << 20U;
  const auto input_of = [&](Bytes part) {
    state->next_in = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(part.data()));
    state->avail_in = static_cast<std::uint32_t>(part.size());
  };
  while (true) {
    if (state->avail_in == 0 && !rest.empty()) {
      const Bytes part = rest.first(std::min<std::size_t>(rest.size(), std::size_t{1} << 30U));
      input_of(part);
      rest = rest.subspan(part.size());
    }
    if (filled == content.size() && filled < entry.bytes) {
      const std::uint64_t wanted = std::min<std::uint64_t>(entry.bytes, std::max<std::uint64_t>(step, 2 * filled));
      content.resize(static_cast<std::size_t>(wanted));
    }
    // One byte more than there may be, so that too much is seen.
    std::byte overflow{};
    const bool at_limit = filled == entry.bytes;
    const std::size_t room = at_limit ? 1 : std::min<std::size_t>(content.size() - filled, std::size_t{1} << 30U);
    state->next_out = reinterpret_cast<std::uint8_t*>(at_limit ? &overflow : content.data() + filled);
    state->avail_out = static_cast<std::uint32_t>(room);
    const std::uint32_t input_before = state->avail_in;
    const int status = isal_inflate(state.get());
    if (status != ISAL_DECOMP_OK) {
      return corrupt("zip: entry '{}': its deflated data are damaged after {} of {} bytes", entry.name, filled,
                     entry.bytes);
    }
    const std::size_t produced = room - state->avail_out;
    if (at_limit && produced > 0) {
      return corrupt("zip: entry '{}' unpacks to more than the {} bytes it says", entry.name, entry.bytes);
    }
    filled += produced;
    if (state->block_state == ISAL_BLOCK_FINISH) break;
    if (produced == 0 && state->avail_in == input_before && (rest.empty() || input_before > 0)) {
      return corrupt("zip: entry '{}': its deflated data end after {} of {} bytes", entry.name, filled, entry.bytes);
    }
  }
  if (filled != entry.bytes) {
    return corrupt("zip: entry '{}' unpacks to {} bytes, the directory says {}", entry.name, filled, entry.bytes);
  }
  // Whole bytes that the decoder has taken in and not used count too.
  if (!rest.empty() || state->avail_in != 0 || state->read_in_length >= 8) {
    return corrupt("zip: entry '{}': bytes follow its deflated data", entry.name);
  }
  content.resize(filled);
  CGL_TRY(check_crc(entry, crc32(content)));
  return content;
}

Status verify_entry(std::span<const std::byte> file, const ZipEntry& entry) {
  if (!entry.deflated) return check_crc(entry, crc32(packed_bytes(file, entry)));
  CGL_TRY(inflate_entry(file, entry));
  return {};
}

}  // namespace cingulum
