#include "formats/tck.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/byte_order.hpp"
#include "formats/corrupt.hpp"
#include "formats/guarded_writer.hpp"
#include "formats/tractogram_batch.hpp"
#include "formats/walked_reader.hpp"

namespace cingulum {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view tck_magic = "mrtrix tracks";
constexpr std::size_t largest_header = std::size_t{64} << 20U;
constexpr int count_digits = 20;
constexpr std::size_t data_alignment = 64;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

struct TckHeader {
  std::uint64_t text_bytes = 0;  // to the end of the line END
  std::optional<std::uint64_t> data_offset;
  std::optional<std::string> datatype;
  std::optional<std::uint64_t> count;
  std::vector<std::pair<std::string, std::string>> notes;
  std::vector<std::string> warnings;
};

Status take_line(std::string_view key, std::string_view value, TckHeader& header) {
  if (key == "file") {
    if (header.data_offset) return corrupt("header: 'file' comes twice");
    const std::size_t space = value.find_first_of(" \t");
    const std::string_view name = value.substr(0, space);
    if (name != ".") return corrupt("header: the data lie in another file ('{}'), which is not supported", name);
    const auto offset = space == std::string_view::npos ? std::nullopt : parse_count(trimmed(value.substr(space)));
    if (!offset) return corrupt("header: 'file: {}' names no offset", value);
    header.data_offset = *offset;
  } else if (key == "datatype") {
    if (header.datatype) return corrupt("header: 'datatype' comes twice");
    header.datatype = std::string(value);
  } else if (key == "count") {
    header.count = parse_count(value);
    if (!header.count) header.warnings.push_back(fmt::format("header: the count '{}' is not a number", value));
  } else {
    header.notes.emplace_back(std::string(key), std::string(value));
  }
  return {};
}

Result<TckHeader> parse_header(Bytes file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), std::min(file.size(), largest_header));
  if (!text.starts_with(tck_magic)) return corrupt("it does not begin with '{}'", tck_magic);
  TckHeader header;
  std::string key;
  std::size_t at = tck_magic.size();
  // What follows the magic words on their line may be blanks only.
  bool first = true;
  while (true) {
    const std::size_t end = text.find('\n', at);
    const bool last = end == std::string_view::npos;
    const std::string_view line = trimmed(text.substr(at, last ? std::string_view::npos : end - at));
    if (std::exchange(first, false)) {
      if (last || !line.empty()) return corrupt("the first line is not '{}'", tck_magic);
    } else if (line == "END") {
      header.text_bytes = last ? text.size() : end + 1;
      return header;
    } else if (last) {
      return corrupt("the header of {} bytes has no line END: the file is cut off or damaged", text.size());
    } else if (!line.empty()) {
      const std::size_t colon = line.find(':');
      // A line without a colon continues the value before it.
      if (colon == std::string_view::npos && key.empty())
        return corrupt("header: '{}' is no 'key: value'", line.substr(0, 60));
      if (colon != std::string_view::npos) key = std::string(trimmed(line.substr(0, colon)));
      const std::string_view value = colon == std::string_view::npos ? line : trimmed(line.substr(colon + 1));
      if (key.empty()) return corrupt("header: '{}' has no key", line.substr(0, 60));
      CGL_TRY(take_line(key, value, header));
    }
    at = end + 1;
  }
}

enum class Mark { point, streamline_end, file_end, damaged };

template <class Bits>
constexpr Bits exponent_of = sizeof(Bits) == 4 ? Bits{0x7f800000U} : static_cast<Bits>(0x7ff0000000000000U);

// Triplets that are looked at together: where all numbers are finite there is no mark.
constexpr std::size_t finite_block = 16;

// `exponent` in the byte order of the file.
template <class Bits>
bool block_is_finite(const std::byte* triplets, Bits exponent) {
  std::array<Bits, 3 * finite_block> bits;
  std::memcpy(bits.data(), triplets, sizeof(bits));
  Bits found = 0;
  for (const Bits b : bits) found |= static_cast<Bits>((b & exponent) == exponent ? 1 : 0);
  return found == 0;
}

template <class Bits>
Mark classify(Bits x, Bits y, Bits z) {
  constexpr Bits exponent = exponent_of<Bits>;
  constexpr Bits magnitude = static_cast<Bits>(~Bits{0}) >> 1U;
  if ((x & exponent) != exponent && (y & exponent) != exponent && (z & exponent) != exponent) return Mark::point;
  const auto is_nan = [&](Bits b) { return (b & magnitude) > exponent; };
  const auto is_infinite = [&](Bits b) { return (b & magnitude) == exponent; };
  if (is_nan(x) && is_nan(y) && is_nan(z)) return Mark::streamline_end;
  if (is_infinite(x) && is_infinite(y) && is_infinite(z)) return Mark::file_end;
  return Mark::damaged;
}

class TckReader final : public WalkedReader {
 public:
  // Places are counted in triplets.
  explicit TckReader(std::string shown) : WalkedReader(std::move(shown), TractogramFormat::tck, 0) {}

  [[nodiscard]] Status open(FileBytes file);

 private:
  struct Found {
    std::size_t triplet;
    Mark mark;
  };
  [[nodiscard]] Result<Found> find_mark(std::size_t from) const;
  template <class Bits>
  [[nodiscard]] Result<Found> find_mark_of(std::size_t from) const;
  [[nodiscard]] Result<std::optional<std::size_t>> place_after(std::size_t triplet, std::uint64_t) const override {
    CGL_TRY_ASSIGN(const Found found, find_mark(triplet));
    return found.mark == Mark::file_end ? std::nullopt : std::optional(found.triplet + 1);
  }
  [[nodiscard]] Result<bool> read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float) override;

  FileBytes file_;
  Bytes data_;
  std::size_t data_offset_ = 0;
  std::optional<std::uint64_t> claimed_count_;
  bool big_endian_ = false;
  bool wide_ = false;
};

Status TckReader::open(FileBytes file) {
  file_ = std::move(file);
  CGL_TRY_ASSIGN(TckHeader header, parse_header(file_.bytes()));
  layout_.warnings = std::move(header.warnings);
  layout_.notes = std::move(header.notes);
  claimed_count_ = header.count;
  if (header.count && *header.count <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    layout_.streamline_count = static_cast<std::int64_t>(*header.count);
  }
  if (!header.datatype) {
    layout_.warnings.emplace_back("header: there is no datatype; Float32LE is assumed");
    header.datatype = "Float32LE";
  }
  const std::string& type = *header.datatype;
  if (type == "Float32" || type == "Float64") {
    layout_.warnings.push_back(fmt::format("header: datatype {} does not name a byte order; LE is assumed", type));
  } else if (type != "Float32LE" && type != "Float32BE" && type != "Float64LE" && type != "Float64BE") {
    return corrupt("header: datatype '{}' is not supported (known: Float32LE, Float32BE, Float64LE, Float64BE)", type);
  }
  wide_ = type.starts_with("Float64");
  big_endian_ = type.ends_with("BE");
  layout_.position_type = wide_ ? float64_type : float32_type;
  if (!header.data_offset) {
    layout_.warnings.emplace_back("header: there is no 'file: . OFFSET'; data are taken to follow END");
    header.data_offset = header.text_bytes;
  }
  const std::size_t size = file_.bytes().size();
  if (*header.data_offset < header.text_bytes || *header.data_offset > size) {
    return corrupt("header: data at byte {} lie inside the header of {} bytes or beyond the file of {}",
                   *header.data_offset, header.text_bytes, size);
  }
  data_offset_ = static_cast<std::size_t>(*header.data_offset);
  data_ = file_.bytes().subspan(data_offset_);
  const std::size_t triplet_bytes = wide_ ? 24 : 12;
  if (data_.size() % triplet_bytes != 0 || data_.empty()) {
    return corrupt("{} bytes of data from byte {} to {} are not whole triplets of {}: the file is cut off or damaged",
                   data_.size(), data_offset_, size, triplet_bytes);
  }
  return {};
}

template <class Bits>
Result<TckReader::Found> TckReader::find_mark_of(std::size_t from) const {
  const std::size_t triplets = data_.size() / (3 * sizeof(Bits));
  constexpr Bits exponent = exponent_of<Bits>;
  const Bits mask = big_endian_ ? swap_bytes(exponent) : exponent;
  for (std::size_t i = from; i < triplets; ++i) {
    while (triplets - i >= finite_block && block_is_finite(data_.data() + i * 3 * sizeof(Bits), mask))
      i += finite_block;
    if (i == triplets) break;
    std::array<Bits, 3> bits;
    std::memcpy(bits.data(), data_.data() + i * sizeof(bits), sizeof(bits));
    if (big_endian_) {
      for (Bits& b : bits) b = swap_bytes(b);
    }
    const Mark mark = classify(bits[0], bits[1], bits[2]);
    if (mark == Mark::point) continue;
    const std::size_t at = data_offset_ + i * sizeof(bits);
    if (mark == Mark::damaged) {
      return corrupt("the triplet at byte {} is neither a point nor a mark: some of its numbers are not finite", at);
    }
    if (mark == Mark::file_end && i != from) {
      return corrupt("the end mark at byte {} comes in the middle of a streamline of {} points", at, i - from);
    }
    if (mark == Mark::file_end && i + 1 != triplets) {
      return corrupt("{} bytes follow the end mark at byte {}", (triplets - i - 1) * sizeof(bits), at);
    }
    return Found{i, mark};
  }
  return corrupt(
      "the data end at byte {} without the end mark (a triplet of infinity): the file is cut off, at least {} bytes "
      "are "
      "missing",
      data_offset_ + data_.size(), 3 * sizeof(Bits));
}

Result<TckReader::Found> TckReader::find_mark(std::size_t from) const {
  return wide_ ? find_mark_of<std::uint64_t>(from) : find_mark_of<std::uint32_t>(from);
}

Result<bool> TckReader::read_batch(TractogramBatch& batch, std::size_t max_points, bool as_float) {
  batch.clear();
  batch.point_data.clear();
  batch.streamline_data.clear();
  const std::size_t triplet_bytes = wide_ ? 24 : 12;
  std::vector<std::byte> swapped;
  while (!ended_) {
    CGL_TRY_ASSIGN(const Found found, find_mark(next_place_));
    if (found.mark == Mark::file_end) {
      ended_ = true;
      if (claimed_count_ && *claimed_count_ != streamlines_read_) {
        layout_.warnings.push_back(
            fmt::format("the header counts {} streamlines, the file has {}", *claimed_count_, streamlines_read_));
      }
      layout_.streamline_count = static_cast<std::int64_t>(streamlines_read_);
      break;
    }
    const std::size_t points = found.triplet - next_place_;
    Bytes bytes = data_.subspan(next_place_ * triplet_bytes, points * triplet_bytes);
    if (big_endian_) {
      swapped.assign(bytes.begin(), bytes.end());
      swap_in_place(swapped, triplet_bytes / 3);
      bytes = swapped;
    }
    decode_positions(bytes, layout_.position_type, as_float, batch.point_count() * 3, batch);
    batch.offsets.push_back(batch.offsets.back() + points);
    next_place_ = found.triplet + 1;
    ++streamlines_read_;
    if (batch.point_count() >= max_points || batch.streamline_count() >= max_points) break;
  }
  return batch.streamline_count() > 0;
}

// Whether all of the encoded numbers, which may lie at any address, are finite.
template <class Number>
bool all_finite(std::span<const std::byte> bytes) {
  bool good = true;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    Number value;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    good = good && std::isfinite(value);
  }
  return good;
}

class TckWriter final : public GuardedWriter {
 public:
  TckWriter(std::string shown, TractogramLayout layout, AtomicFile file)
      : GuardedWriter(std::move(shown), std::move(layout)), file_(std::move(file)) {}

  [[nodiscard]] Status begin();

 private:
  Status append_batch(const TractogramBatch& batch) override;
  void discard() noexcept override { file_.discard(); }
  Status write_end() override;
  [[nodiscard]] Status encode_streamline(const TractogramBatch& batch, std::size_t i, std::span<std::byte> place) const;
  void store_triplet(double value, std::byte* place) const {
    const std::array<double, 3> triplet = {value, value, value};
    if (layout_.position_type == float64_type) {
      std::memcpy(place, triplet.data(), sizeof(triplet));
      return;
    }
    const auto number = static_cast<float>(value);
    const std::array<float, 3> triplet32 = {number, number, number};
    std::memcpy(place, triplet32.data(), sizeof(triplet32));
  }

  AtomicFile file_;
  StreamlineParts parts_;
  std::size_t count_offset_ = 0;
  std::uint64_t streamlines_ = 0;
};

Status TckWriter::begin() {
  std::string text(tck_magic);
  text += "\ncount: ";
  count_offset_ = text.size();
  text.append(count_digits, '0');
  text += layout_.position_type == float64_type ? "\ndatatype: Float64LE\n" : "\ndatatype: Float32LE\n";
  for (const auto& [key, value] : layout_.notes) {
    const bool ours = key == "count" || key == "datatype" || key == "file";
    if (ours || key.empty() || key.find_first_of(":\n") != std::string::npos || trimmed(key) != key ||
        value.find('\n') != std::string::npos || trimmed(value) != value) {
      return fail(ErrorKind::invalid_argument, "the note '{}: {}' cannot be a line of a TCK header", key, value);
    }
    text += fmt::format("{}: {}\n", key, value);
  }
  constexpr std::size_t rest = std::string_view("file: . \nEND\n").size() + 20;
  std::size_t offset = text.size() + rest;
  offset += (data_alignment - offset % data_alignment) % data_alignment;
  text += fmt::format("file: . {}\nEND\n", offset);
  text.append(offset - text.size(), '\0');
  return file_.append(text);
}

Status TckWriter::append_batch(const TractogramBatch& batch) {
  CGL_TRY(check_batch(layout_, batch));
  // A streamline is its points and one triplet that ends it.
  const std::size_t triplet_bytes = 3 * layout_.position_type.bytes();
  const auto bytes_before = [&](std::size_t streamline) {
    return (batch.offsets[streamline] + streamline) * triplet_bytes;
  };
  parts_.cut(batch.streamline_count(), bytes_before);
  FirstFailure failure;
  CGL_TRY(file_.append_parts(parts_.offsets, [&](std::size_t part, std::span<std::byte> place) {
    for (std::size_t i = parts_.streamlines[part]; i < parts_.streamlines[part + 1]; ++i) {
      const auto points = static_cast<std::size_t>(batch.offsets[i + 1] - batch.offsets[i]);
      failure.note(part, encode_streamline(batch, i, place.first(points * triplet_bytes)));
      store_triplet(std::numeric_limits<double>::quiet_NaN(), place.data() + points * triplet_bytes);
      place = place.subspan((points + 1) * triplet_bytes);
    }
  }));
  CGL_TRY(failure.take());
  streamlines_ += batch.streamline_count();
  return {};
}

Status TckWriter::encode_streamline(const TractogramBatch& batch, std::size_t i, std::span<std::byte> place) const {
  CGL_TRY(encode_streamlines(batch, i, i + 1, layout_.position_type, place));
  const bool good = layout_.position_type == float64_type ? all_finite<double>(place) : all_finite<float>(place);
  if (good) return {};
  return fail(ErrorKind::invalid_argument,
              "streamline {} has a coordinate that is not finite; TCK ends streamlines with such numbers",
              streamlines_ + i);
}

Status TckWriter::write_end() {
  std::array<std::byte, 3 * sizeof(double)> end{};
  store_triplet(std::numeric_limits<double>::infinity(), end.data());
  CGL_TRY(file_.append(std::span(end).first(3 * layout_.position_type.bytes())));
  const std::string count = fmt::format("{:0{}}", streamlines_, count_digits);
  CGL_TRY(file_.write_at(count_offset_, std::as_bytes(std::span(count))));
  return file_.commit();
}

}  // namespace

bool looks_like_tck(std::span<const std::byte> file) {
  return file.size() >= tck_magic.size() && std::memcmp(file.data(), tck_magic.data(), tck_magic.size()) == 0;
}

Result<std::unique_ptr<TractogramReader>> open_tck(std::string shown, FileBytes file) {
  return open_walked<TckReader>(std::move(shown), std::move(file));
}

Result<std::unique_ptr<TractogramWriter>> create_tck_writer(const std::filesystem::path& path,
                                                            const TractogramLayout& layout,
                                                            const WriteOptions& options) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TractogramWriter>> {
    if (!layout.point_fields.empty() || !layout.streamline_fields.empty()) {
      return fail_file(path.native(), ErrorKind::invalid_argument, "writing {}: TCK has no fields", path.native());
    }
    TractogramLayout own = layout;
    if (own.position_type != float64_type) own.position_type = float32_type;
    CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, options));
    auto writer = std::make_unique<TckWriter>(path.native(), std::move(own), std::move(file));
    CGL_TRY(name_output(writer->begin(), path.native()));
    return writer;
  });
}

}  // namespace cingulum
