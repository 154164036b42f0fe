#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file_layer.hpp"
#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "formats/crc32.hpp"
#include "formats/streamline_seeker.hpp"
#include "formats/tractogram_batch.hpp"
#include "formats/trx.hpp"
#include "formats/zip_archive.hpp"

namespace cingulum {
namespace {

using Bytes = std::span<const std::byte>;

// One file of the folder or entry of the archive.
struct TrxFile {
  std::string name;  // "dpv/fa.float32"
  Bytes bytes;
  std::optional<ZipEntry> unverified;  // a stored entry, whose CRC is compared by whoever reads it
};

// "fa.3.float32" taken apart.
struct ArrayName {
  std::string name;
  std::uint64_t columns = 1;
  ElementType type = {};
  bool is_bit = false;
};

Result<ArrayName> parse_array_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  std::vector<std::string_view> parts;
  std::string_view rest = name;
  while (true) {
    const std::size_t dot = rest.find('.');
    parts.push_back(rest.substr(0, dot));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if ((parts.size() != 2 && parts.size() != 3) || parts[0].empty()) {
    return corrupt("'{}': an array is named NAME.TYPE or NAME.COLUMNS.TYPE", path);
  }
  if (const Status named = check_trx_name("array", parts[0]); !named) return corrupt("{}", named.error().message());
  ArrayName result{.name = std::string(parts[0])};
  const auto type = element_type_from_name(parts.back());
  if (!type) return corrupt("'{}': the type '{}' is not known", path, parts.back());
  result.type = *type;
  result.is_bit = parts.back() == "bit" || parts.back() == "bool";
  if (parts.size() == 3) {
    const char* const end = parts[1].data() + parts[1].size();
    const auto parsed = std::from_chars(parts[1].data(), end, result.columns);
    if (parsed.ec != std::errc() || parsed.ptr != end || result.columns == 0 || result.columns > 1000000) {
      return corrupt("'{}': '{}' is not a number of columns", path, parts[1]);
    }
  }
  return result;
}

// An array that is read from front to back; its CRC is compared when its last byte has been taken.
class ArrayStream {
 public:
  ArrayStream() = default;
  explicit ArrayStream(const TrxFile& file) : bytes_(file.bytes), unverified_(file.unverified) {}

  [[nodiscard]] Bytes take(std::size_t count) {
    const Bytes piece = bytes_.subspan(taken_, count);
    taken_ += count;
    return piece;
  }
  // From then on there is no CRC to compare.
  void seek(std::size_t byte) {
    taken_ = byte;
    unverified_.reset();
  }
  // Adds a piece that take() gave; separate so that it runs while the piece is in the cache.
  void add_to_crc(Bytes piece) {
    if (unverified_) crc_ = crc32(piece, crc_);
  }
  [[nodiscard]] Status finish() const {
    if (!unverified_) return {};
    return check_crc(*unverified_, crc_);
  }

 private:
  Bytes bytes_;
  std::optional<ZipEntry> unverified_;
  std::size_t taken_ = 0;
  std::uint32_t crc_ = 0;
};

struct FieldStream {
  std::size_t row_bytes = 0;
  ArrayStream stream;
};

class TrxReader final : public TractogramReader, public StreamlineSeeker {
 public:
  TrxReader(std::string shown, TractogramFormat format) : shown_(std::move(shown)) { layout_.format = format; }

  [[nodiscard]] Status open_zip(FileBytes file);
  [[nodiscard]] Status open_folder();

  const TractogramLayout& layout() const override { return layout_; }
  Result<bool> next(TractogramBatch& batch, std::size_t max_points, bool as_float) override {
    return add_file_context(catch_out_of_memory([&] { return read_batch(batch, max_points, as_float); }), "reading",
                            shown_);
  }
  Result<std::vector<TractogramGroup>> groups() override {
    return add_file_context(catch_out_of_memory([&] { return read_groups(); }), "reading", shown_);
  }
  Status verify() override {
    return add_context(catch_out_of_memory([&] { return verify_all(); }), "verifying {}", shown_);
  }
  Result<std::uint64_t> count() override { return header_.streamlines; }
  Status seek(std::uint64_t streamline) override;

 private:
  [[nodiscard]] Status interpret();
  [[nodiscard]] Status take_offsets(const TrxFile& file);
  [[nodiscard]] Status take_field(const TrxFile& file, std::string_view kind, std::uint64_t rows,
                                  std::vector<DataField>& fields, std::vector<FieldStream>& streams);
  [[nodiscard]] Result<bool> read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float);
  [[nodiscard]] Result<std::vector<TractogramGroup>> read_groups() const;
  [[nodiscard]] Status verify_all() const;
  [[nodiscard]] Status list_folder(const std::string& relative, int depth);

  // The first point of a streamline; that of the streamline after the last is the number of points.
  [[nodiscard]] std::uint64_t offset(std::uint64_t index) const {
    if (index >= offset_entries_) return header_.points;
    const auto at = static_cast<std::size_t>(index);
    return wide_offsets_ ? load<std::uint64_t>(offsets_, at * 8) : load<std::uint32_t>(offsets_, at * 4);
  }

  std::string shown_;
  TractogramLayout layout_;
  TrxHeader header_;
  FileBytes archive_;
  std::vector<ZipEntry> entries_;
  std::vector<std::vector<std::byte>> inflated_;
  std::vector<FileBytes> mapped_;
  std::vector<TrxFile> files_;

  Bytes offsets_;
  std::uint64_t offset_entries_ = 0;
  bool wide_offsets_ = true;
  ArrayStream positions_;
  std::vector<FieldStream> point_streams_;
  std::vector<FieldStream> streamline_streams_;
  std::vector<std::pair<ArrayName, const TrxFile*>> group_files_;
  std::vector<std::pair<std::string, const TrxFile*>> group_data_files_;  // by the name of the group
  std::uint64_t next_streamline_ = 0;
  bool finished_ = false;
};

Status TrxReader::open_zip(FileBytes file) {
  archive_ = std::move(file);
  CGL_TRY_ASSIGN(entries_, read_zip_directory(archive_.bytes()));
  inflated_.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) {
    if (!entry.deflated) {
      files_.push_back({.name = entry.name, .bytes = packed_bytes(archive_.bytes(), entry), .unverified = entry});
      continue;
    }
    CGL_TRY_ASSIGN(std::vector<std::byte> content, inflate_entry(archive_.bytes(), entry));
    inflated_.push_back(std::move(content));
    layout_.deflated = true;
    files_.push_back({.name = entry.name, .bytes = inflated_.back(), .unverified = std::nullopt});
  }
  return interpret();
}

// Names sorted, so that the order does not depend on the file system.
Status TrxReader::list_folder(const std::string& relative, int depth) {
  const std::string folder = relative.empty() ? shown_ : shown_ + "/" + relative;
  // Not by std::filesystem, whose iterators end the process when memory runs out.
  std::vector<std::string> names;
  const int listed = FileLayer::system().list_folder(folder.c_str(), names);
  if (listed < 0) return fail(ErrorKind::io, "listing {}: {}", folder, system_error_text(-listed));
  std::sort(names.begin(), names.end());
  constexpr int deepest = 2;  // dpg/GROUP
  constexpr std::size_t most_files = 1000000;
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    const std::string path = relative.empty() ? name : relative + "/" + name;
    const std::string file = folder + "/" + name;
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored)) {
      if (depth < deepest) CGL_TRY(list_folder(path, depth + 1));
      continue;
    }
    if (files_.size() >= most_files) return corrupt("the folder has more than {} files", most_files);
    CGL_TRY_ASSIGN(FileBytes bytes, FileBytes::map(file));
    mapped_.push_back(std::move(bytes));
    files_.push_back({.name = path, .bytes = mapped_.back().bytes(), .unverified = std::nullopt});
  }
  return {};
}

Status TrxReader::open_folder() {
  CGL_TRY(list_folder("", 0));
  return interpret();
}

Status TrxReader::interpret() {
  const auto header =
      std::find_if(files_.begin(), files_.end(), [](const TrxFile& f) { return f.name == "header.json"; });
  if (header == files_.end()) return corrupt("it has no header.json: not a TRX file");
  if (header->unverified) CGL_TRY(check_crc(*header->unverified, crc32(header->bytes)));
  CGL_TRY_ASSIGN(
      header_,
      add_context(parse_trx_header({reinterpret_cast<const char*>(header->bytes.data()), header->bytes.size()}),
                  "header.json"));
  layout_.reference = header_.reference;
  if (header_.streamlines > 0x7fffffffffffffffU || header_.points > 0x7fffffffffffffffU) {
    return corrupt("header.json: {} streamlines of {} points are too many", header_.streamlines, header_.points);
  }
  layout_.streamline_count = static_cast<std::int64_t>(header_.streamlines);
  layout_.point_count = static_cast<std::int64_t>(header_.points);

  bool has_positions = false;
  bool has_offsets = false;
  for (const TrxFile& file : files_) {
    const std::size_t slash = file.name.find('/');
    const std::string_view folder = slash == std::string::npos ? "" : std::string_view(file.name).substr(0, slash);
    const bool deeper = slash != std::string::npos && file.name.find('/', slash + 1) != std::string::npos;
    if (folder.empty() && file.name.starts_with("positions.")) {
      if (has_positions) return corrupt("it has positions twice");
      has_positions = true;
      CGL_TRY_ASSIGN(const ArrayName name, parse_array_name(file.name));
      if (name.type.code != ElementType::Code::floating || name.columns != 3) {
        return corrupt("'{}': positions are float16, float32 or float64 in 3 columns", file.name);
      }
      const std::uint64_t row_bytes = name.type.bytes() * 3;
      if (file.bytes.size() % row_bytes != 0 || file.bytes.size() / row_bytes != header_.points) {
        return corrupt("'{}' has {} bytes, {} points need {} each", file.name, file.bytes.size(), header_.points,
                       row_bytes);
      }
      layout_.position_type = name.type;
      positions_ = ArrayStream(file);
    } else if (folder.empty() && file.name.starts_with("offsets.")) {
      if (has_offsets) return corrupt("it has offsets twice");
      has_offsets = true;
      CGL_TRY(take_offsets(file));
    } else if (folder == "dpv" && !deeper) {
      CGL_TRY(take_field(file, "dpv", header_.points, layout_.point_fields, point_streams_));
    } else if (folder == "dps" && !deeper) {
      CGL_TRY(take_field(file, "dps", header_.streamlines, layout_.streamline_fields, streamline_streams_));
    } else if (folder == "groups" && !deeper) {
      CGL_TRY_ASSIGN(ArrayName name, parse_array_name(file.name));
      const bool integer =
          name.type.code == ElementType::Code::integer || name.type.code == ElementType::Code::unsigned_integer;
      if (!integer || name.is_bit || name.columns != 1 || file.bytes.size() % name.type.bytes() != 0) {
        return corrupt("'{}': {} bytes are not a list of streamlines", file.name, file.bytes.size());
      }
      group_files_.emplace_back(std::move(name), &file);
    } else if (folder == "dpg" && deeper) {
      const std::string_view rest = std::string_view(file.name).substr(slash + 1);
      const std::size_t second = rest.find('/');
      if (rest.find('/', second + 1) != std::string_view::npos) return corrupt("'{}': folders too deep", file.name);
      CGL_TRY_ASSIGN(const ArrayName name, parse_array_name(file.name));
      if (file.bytes.size() != name.columns * name.type.bytes()) {
        return corrupt("'{}' has {} bytes, {} columns of {} need {}", file.name, file.bytes.size(), name.columns,
                       name.type.name(), name.columns * name.type.bytes());
      }
      if (const Status named = check_trx_name("group", rest.substr(0, second)); !named) {
        return corrupt("{}", named.error().message());
      }
      group_data_files_.emplace_back(std::string(rest.substr(0, second)), &file);
    } else if (file.name != "header.json") {
      layout_.warnings.push_back(fmt::format("'{}' is not part of the TRX format and was left out", file.name));
    }
  }
  if (header_.points > 0 && !has_positions) return corrupt("it has no positions for {} points", header_.points);
  if (header_.streamlines > 0 && !has_offsets)
    return corrupt("it has no offsets for {} streamlines", header_.streamlines);
  if (header_.streamlines == 0 && header_.points > 0)
    return corrupt("it has {} points and no streamline", header_.points);

  std::map<std::string_view, int> names;
  for (const auto& [name, file] : group_files_) {
    if (++names[name.name] > 1) return corrupt("it has the group '{}' twice", name.name);
  }
  std::map<std::pair<std::string_view, std::string>, int> data_names;
  for (const auto& [group, file] : group_data_files_) {
    if (!names.contains(group)) return corrupt("'{}': there is no group '{}'", file->name, group);
    CGL_TRY_ASSIGN(const ArrayName name, parse_array_name(file->name));
    if (++data_names[{group, name.name}] > 1) return corrupt("the group '{}' has '{}' twice", group, name.name);
  }
  return {};
}

Status TrxReader::take_offsets(const TrxFile& file) {
  CGL_TRY_ASSIGN(const ArrayName name, parse_array_name(file.name));
  if (name.type.code != ElementType::Code::unsigned_integer || name.type.bits < 32 || name.columns != 1) {
    return corrupt("'{}': offsets are uint32 or uint64", file.name);
  }
  wide_offsets_ = name.type.bits == 64;
  const std::uint64_t entries = file.bytes.size() / name.type.bytes();
  if (file.bytes.size() % name.type.bytes() != 0 ||
      (entries != header_.streamlines && entries != header_.streamlines + 1)) {
    return corrupt("'{}' has {} bytes, which is not {} or {} entries of {}", file.name, file.bytes.size(),
                   header_.streamlines, header_.streamlines + 1, name.type.bytes());
  }
  if (file.unverified) CGL_TRY(check_crc(*file.unverified, crc32(file.bytes)));
  offsets_ = file.bytes;
  offset_entries_ = entries;
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t here = offset(i);
    if (i == 0 && here != 0) return corrupt("'{}': the first offset is {}, not 0", file.name, here);
    if (here < before) return corrupt("'{}': offset {} decreases from {} to {}", file.name, i, before, here);
    if (here > header_.points) {
      return corrupt("'{}': offset {} is {}, beyond the {} points", file.name, i, here, header_.points);
    }
    before = here;
  }
  if (entries == header_.streamlines + 1 && before != header_.points) {
    return corrupt("'{}': the last offset is {}, not the {} points of header.json", file.name, before, header_.points);
  }
  return {};
}

Status TrxReader::take_field(const TrxFile& file, std::string_view kind, std::uint64_t rows,
                             std::vector<DataField>& fields, std::vector<FieldStream>& streams) {
  CGL_TRY_ASSIGN(ArrayName name, parse_array_name(file.name));
  const std::uint64_t row_bytes = name.columns * name.type.bytes();
  if (file.bytes.size() % row_bytes != 0 || file.bytes.size() / row_bytes != rows) {
    return corrupt("'{}' has {} bytes, {} rows of {} were expected", file.name, file.bytes.size(), rows, row_bytes);
  }
  for (const DataField& field : fields) {
    if (field.name == name.name) return corrupt("it has the {} field '{}' twice", kind, name.name);
  }
  if (name.is_bit) layout_.warnings.push_back(fmt::format("'{}' is read as uint8", file.name));
  fields.push_back(
      {.name = std::move(name.name), .type = name.type, .columns = static_cast<std::int64_t>(name.columns)});
  streams.push_back({.row_bytes = static_cast<std::size_t>(row_bytes), .stream = ArrayStream(file)});
  return {};
}

Result<bool> TrxReader::read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float) {
  batch.offsets.assign(1, 0);
  batch.point_data.resize(point_streams_.size());
  batch.streamline_data.resize(streamline_streams_.size());
  const std::uint64_t first = next_streamline_;
  const std::uint64_t first_point = offset(first);
  // Streamlines without points count too, or a batch of them had no bound.
  std::uint64_t last = first;
  while (last < header_.streamlines) {
    ++last;
    const std::uint64_t points = offset(last + 1) - first_point;
    if (points > max_points || last - first >= max_points) break;
  }
  const auto points = static_cast<std::size_t>(offset(last) - first_point);
  const auto streamlines = static_cast<std::size_t>(last - first);

  batch.offsets.reserve(streamlines + 1);
  for (std::uint64_t i = first + 1; i <= last; ++i) {
    batch.offsets.push_back(offset(i) - first_point);
  }
  const auto read_field = [](FieldStream& field, std::size_t rows, std::vector<std::byte>& out) {
    const Bytes piece = field.stream.take(rows * field.row_bytes);
    field.stream.add_to_crc(piece);
    out.assign(piece.begin(), piece.end());
  };
  const Bytes positions = positions_.take(points * 3 * layout_.position_type.bytes());
  positions_.add_to_crc(positions);
  decode_positions(positions, layout_.position_type, as_float, 0, batch);
  for (std::size_t i = 0; i < point_streams_.size(); ++i) read_field(point_streams_[i], points, batch.point_data[i]);
  for (std::size_t i = 0; i < streamline_streams_.size(); ++i) {
    read_field(streamline_streams_[i], streamlines, batch.streamline_data[i]);
  }
  next_streamline_ = last;
  if (last == header_.streamlines && !finished_) {
    CGL_TRY(positions_.finish());
    for (const FieldStream& field : point_streams_) CGL_TRY(field.stream.finish());
    for (const FieldStream& field : streamline_streams_) CGL_TRY(field.stream.finish());
    finished_ = true;
  }
  return streamlines > 0;
}

Status TrxReader::seek(std::uint64_t streamline) {
  if (streamline > header_.streamlines) {
    return fail(ErrorKind::not_found, "{}: there is no streamline {}", shown_, streamline);
  }
  const auto point = static_cast<std::size_t>(offset(streamline));
  positions_.seek(point * 3 * layout_.position_type.bytes());
  for (FieldStream& field : point_streams_) field.stream.seek(point * field.row_bytes);
  for (FieldStream& field : streamline_streams_) {
    field.stream.seek(static_cast<std::size_t>(streamline) * field.row_bytes);
  }
  next_streamline_ = streamline;
  return {};
}

Result<std::vector<TractogramGroup>> TrxReader::read_groups() const {
  std::vector<TractogramGroup> groups;
  groups.reserve(group_files_.size());
  std::map<std::string_view, std::size_t> index;
  for (const auto& [name, file] : group_files_) {
    if (file->unverified) CGL_TRY(check_crc(*file->unverified, crc32(file->bytes)));
    TractogramGroup group{.name = name.name, .streamlines = {}, .fields = {}, .data = {}};
    const std::size_t size = name.type.bytes();
    const std::size_t count = file->bytes.size() / size;
    group.streamlines.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      // A negative number becomes a very large one and is refused with it.
      std::uint64_t value = 0;
      std::memcpy(&value, file->bytes.data() + i * size, size);
      if (value >= header_.streamlines || value > 0xffffffffU) {
        return corrupt("'{}': streamline {} of the group is {}, there are {}", file->name, i, value,
                       header_.streamlines);
      }
      group.streamlines.push_back(static_cast<std::uint32_t>(value));
    }
    index[name.name] = groups.size();
    groups.push_back(std::move(group));
  }
  for (const auto& [group_name, file] : group_data_files_) {
    if (file->unverified) CGL_TRY(check_crc(*file->unverified, crc32(file->bytes)));
    CGL_TRY_ASSIGN(ArrayName name, parse_array_name(file->name));
    TractogramGroup& group = groups[index[group_name]];
    group.fields.push_back(
        {.name = std::move(name.name), .type = name.type, .columns = static_cast<std::int64_t>(name.columns)});
    group.data.emplace_back(file->bytes.begin(), file->bytes.end());
  }
  return groups;
}

Status TrxReader::verify_all() const {
  for (const ZipEntry& entry : entries_) CGL_TRY(verify_entry(archive_.bytes(), entry));
  CGL_TRY(read_groups());
  return {};
}

}  // namespace

Result<std::unique_ptr<TractogramReader>> open_trx(std::string shown, FileBytes file) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramReader>> {
    auto reader = std::make_unique<TrxReader>(shown, TractogramFormat::trx);
    CGL_TRY(add_file_context(reader->open_zip(std::move(file)), "reading", shown));
    return reader;
  });
}

Result<std::unique_ptr<TractogramReader>> open_trx_folder(const std::filesystem::path& folder) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramReader>> {
    auto reader = std::make_unique<TrxReader>(folder.native(), TractogramFormat::trx_folder);
    CGL_TRY(add_file_context(reader->open_folder(), "reading", folder.native()));
    return reader;
  });
}

}  // namespace cingulum
