#include "view/shown_lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/streamline_seeker.hpp"
#include "streamlines/linearise.hpp"
#include "view/view_messages.hpp"

namespace cingulum::view {
namespace {

constexpr double shown_tolerance_mm = 0.3;
constexpr std::uint64_t run_lines = 16;
// The first message is read, sent and drawn in a moment. A sixteenth of a large file is what a brain looks like; of a
// small one all.
constexpr std::uint64_t smallest_sample_lines = 8192;
constexpr std::uint64_t sample_share = 16;
// Points of the file. Of a million streamlines there are some dozen messages, so that going to and fro costs little,
// and each lies in a part of the brain.
constexpr std::size_t first_message_points = std::size_t{1} << 18U;
constexpr std::size_t message_points = std::size_t{1} << 20U;
// A page counts the lines of a message in 15 bits.
constexpr std::size_t message_lines = 16384;

// A number that belongs to the run alone (the finaliser of MurmurHash3): runs in its order are a random sample, the
// same whenever the file is shown.
std::uint64_t drawn_number(std::uint64_t run) {
  std::uint64_t bits = run + 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 33U)) * 0xff51afd7ed558ccdu;
  bits = (bits ^ (bits >> 33U)) * 0xc4ceb9fe1a85ec53u;
  return bits ^ (bits >> 33U);
}

std::vector<std::uint32_t> drawn_runs(std::uint64_t lines) {
  const std::uint64_t runs = (lines + run_lines - 1) / run_lines;
  std::vector<std::uint32_t> order(static_cast<std::size_t>(runs));
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [](std::uint32_t a, std::uint32_t b) {
    const std::uint64_t first = drawn_number(a), second = drawn_number(b);
    return first != second ? first < second : a < b;
  });
  const std::uint64_t wanted = std::max(smallest_sample_lines, lines / sample_share);
  order.resize(static_cast<std::size_t>(std::min(runs, (wanted + run_lines - 1) / run_lines)));
  order.shrink_to_fit();
  return order;
}

using Middle = std::array<float, 3>;

// The origin for a line without points, or with one that is no place: it has to lie somewhere.
Middle middle_of(std::span<const float> line) {
  if (line.empty()) return {};
  const std::size_t at = 3 * (line.size() / 3 / 2);
  Middle middle{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!(std::abs(line[at + axis]) <= 1e5f)) return {};
    middle[axis] = line[at + axis];
  }
  return middle;
}

// Bits of three numbers of ten bits, in turn: cells in the order of this number lie near each other.
std::uint32_t interleaved(const std::array<std::uint32_t, 3>& cell) {
  std::uint32_t result = 0;
  for (unsigned bit = 0; bit < 10; ++bit) {
    for (unsigned axis = 0; axis < 3; ++axis) result |= ((cell[axis] >> bit) & 1U) << (3 * bit + axis);
  }
  return result;
}

}  // namespace

Result<std::vector<std::byte>> ShownLines::message(const std::filesystem::path& path, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return catch_out_of_memory([&]() -> Result<std::vector<std::byte>> {
    CGL_TRY(open(path));
    Result<std::vector<std::byte>> made = [&]() -> Result<std::vector<std::byte>> {
      CGL_TRY_ASSIGN(Shown* const shown, find(path));
      const auto none = [&] {
        return fail(ErrorKind::not_found, "{}: there is no message {} of its streamlines", path.filename().string(),
                    number);
      };
      if (number > shown->lines) return none();  // there are no more messages than lines, and one
      // Messages of the sample end by their points: the beginnings of those before are needed.
      while (shown->sample_begins.back() < shown->sample.size() && number + 1 > shown->sample_begins.size()) {
        CGL_TRY(sample_message(*shown, shown->sample_begins.size() - 1));
      }
      const std::uint64_t samples =
          shown->sample_begins.back() < shown->sample.size() ? number + 1 : shown->sample_begins.size() - 1;
      if (number < samples) return sample_message(*shown, static_cast<std::size_t>(number));
      if (!shown->rest) CGL_TRY(sort_rest(path, *shown));
      if (number == samples) return make_places_message(shown->boxes);
      const std::uint64_t of_rest = number - samples - 1;
      if (of_rest >= shown->boxes.size()) return none();
      const auto at = static_cast<std::size_t>(of_rest);
      const std::size_t begin = shown->rest_begins[at];
      return message_of(std::span(*shown->rest).subspan(begin, shown->rest_begins[at + 1] - begin));
    }();
    if (!made && made.error().kind() != ErrorKind::not_found) {
      // The file may be another when it is asked for again.
      files_.erase(path);
      reader_.reset();
    }
    return made;
  });
}

Status ShownLines::open(const std::filesystem::path& path) {
  if (reader_ && open_path_ == path) return {};
  reader_.reset();
  CGL_TRY_ASSIGN(reader_, TractogramReader::open(path));
  open_path_ = path;
  if (const auto known = files_.find(path); known != files_.end()) {
    std::error_code ignored;
    const bool is_same = known->second.written == std::filesystem::last_write_time(path, ignored) &&
                         known->second.bytes == std::filesystem::file_size(path, ignored);
    if (!is_same) files_.erase(known);
  }
  return {};
}

Result<ShownLines::Shown*> ShownLines::find(const std::filesystem::path& path) {
  if (const auto known = files_.find(path); known != files_.end()) return &known->second;
  CGL_TRY_ASSIGN(const std::uint64_t lines, seeker_of(*reader_).count());
  if (lines > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::full, "{}: {} streamlines; a page can name 2^32 - 1", path.filename().string(), lines);
  }
  Shown shown;
  std::error_code ignored;
  shown.written = std::filesystem::last_write_time(path, ignored);
  shown.bytes = std::filesystem::file_size(path, ignored);
  shown.lines = lines;
  shown.sample = drawn_runs(lines);
  if (shown.sample.size() * run_lines >= lines) shown.rest.emplace();
  if (shown.rest) shown.rest_begins = {0};
  return &files_.emplace(path, std::move(shown)).first->second;
}

// Notes where the next one begins.
Result<std::vector<std::byte>> ShownLines::sample_message(Shown& shown, std::size_t number) {
  const std::size_t most_points = number == 0 ? first_message_points : message_points;
  const bool is_known = number + 1 < shown.sample_begins.size();
  std::vector<std::uint32_t> lines;
  TractogramBatch batch;
  std::size_t at = shown.sample_begins[number];
  const std::size_t end = is_known ? shown.sample_begins[number + 1] : shown.sample.size();
  while (at < end && (is_known || (batch.point_count() < most_points && lines.size() + run_lines <= message_lines))) {
    const std::uint64_t first = shown.sample[at++] * run_lines;
    std::vector<std::uint32_t> run(static_cast<std::size_t>(std::min(run_lines, shown.lines - first)));
    std::iota(run.begin(), run.end(), static_cast<std::uint32_t>(first));
    CGL_TRY(gather(run, batch));
    lines.insert(lines.end(), run.begin(), run.end());
  }
  if (!is_known) shown.sample_begins.push_back(at);
  TractogramBatch thinned;
  CGL_TRY(Lineariser({.tolerance_mm = shown_tolerance_mm}, pool_).apply(batch, {}, thinned));
  return make_lines_message({.offsets = thinned.offsets, .positions = thinned.positions, .places = lines});
}

// The whole file is read once, from front to back, so that its checksums are compared, too.
Status ShownLines::sort_rest(const std::filesystem::path& path, Shown& shown) {
  std::vector<bool> in_sample((static_cast<std::size_t>(shown.lines) + run_lines - 1) / run_lines);
  for (const std::uint32_t run : shown.sample) in_sample[run] = true;
  struct Other {
    Middle middle;
    std::uint32_t line;
    std::uint32_t points;
    std::uint32_t cell;
  };
  std::vector<Other> others;
  others.reserve(static_cast<std::size_t>(shown.lines) -
                 std::min<std::size_t>(shown.sample.size() * run_lines, static_cast<std::size_t>(shown.lines)));
  CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
  TractogramBatch batch;
  Middle least{}, greatest{};
  std::uint64_t line = 0;
  while (true) {
    CGL_TRY_ASSIGN(const bool more, reader->next(batch, message_points, true));
    if (!more) break;
    for (std::size_t i = 0; i < batch.streamline_count(); ++i, ++line) {
      if (line >= shown.lines) break;
      if (in_sample[static_cast<std::size_t>(line / run_lines)]) continue;
      const std::span<const float> of_line = batch.streamline(i);
      const Middle middle = middle_of(of_line);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        least[axis] = others.empty() ? middle[axis] : std::min(least[axis], middle[axis]);
        greatest[axis] = others.empty() ? middle[axis] : std::max(greatest[axis], middle[axis]);
      }
      others.push_back({middle, static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(of_line.size() / 3), 0});
    }
  }
  for (Other& other : others) {
    std::array<std::uint32_t, 3> cell{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const float extent = greatest[axis] - least[axis];
      const float share = extent > 0 ? (other.middle[axis] - least[axis]) / extent : 0.0f;
      cell[axis] = std::min(static_cast<std::uint32_t>(share * 1024.0f), 1023U);
    }
    other.cell = interleaved(cell);
  }
  std::sort(others.begin(), others.end(),
            [](const Other& a, const Other& b) { return a.cell != b.cell ? a.cell < b.cell : a.line < b.line; });
  std::vector<std::uint32_t> rest;
  rest.reserve(others.size());
  std::vector<std::size_t> begins = {0};
  std::vector<std::array<float, 6>> boxes;
  std::uint64_t points = 0;
  for (const Other& other : others) {
    const bool is_first = rest.size() == begins.back();
    if (!is_first && (points + other.points > message_points || rest.size() - begins.back() == message_lines)) {
      begins.push_back(rest.size());
      points = 0;
    }
    if (rest.size() == begins.back()) {
      boxes.push_back(
          {other.middle[0], other.middle[1], other.middle[2], other.middle[0], other.middle[1], other.middle[2]});
    }
    for (std::size_t axis = 0; axis < 3; ++axis) {
      boxes.back()[axis] = std::min(boxes.back()[axis], other.middle[axis]);
      boxes.back()[3 + axis] = std::max(boxes.back()[3 + axis], other.middle[axis]);
    }
    rest.push_back(other.line);
    points += other.points;
  }
  if (rest.size() > begins.back()) begins.push_back(rest.size());
  // As they lie in the file: read forwards, and what is beside each other at once.
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    std::sort(rest.begin() + static_cast<std::ptrdiff_t>(begins[i]),
              rest.begin() + static_cast<std::ptrdiff_t>(begins[i + 1]));
  }
  shown.rest = std::move(rest);
  shown.rest_begins = std::move(begins);
  shown.boxes = std::move(boxes);
  return {};
}

Result<std::vector<std::byte>> ShownLines::message_of(std::span<const std::uint32_t> lines) {
  TractogramBatch batch, thinned;
  CGL_TRY(gather(lines, batch));
  CGL_TRY(Lineariser({.tolerance_mm = shown_tolerance_mm}, pool_).apply(batch, {}, thinned));
  return make_lines_message({.offsets = thinned.offsets, .positions = thinned.positions, .places = lines});
}

// Positions alone, behind those that are there. Lines that follow each other in the file are read without a jump.
Status ShownLines::gather(std::span<const std::uint32_t> lines, TractogramBatch& batch) {
  TractogramBatch one;
  std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t line : lines) {
    if (line != next) CGL_TRY(seeker_of(*reader_).seek(line));
    CGL_TRY_ASSIGN(const bool more, reader_->next(one, 1, true));
    if (!more) return fail(ErrorKind::corrupt, "{}: streamline {} is missing", open_path_.filename().string(), line);
    const std::span<const float> points = one.streamline(0);
    batch.positions.insert(batch.positions.end(), points.begin(), points.end());
    batch.offsets.push_back(batch.positions.size() / 3);
    next = line + std::uint64_t{one.streamline_count()};
  }
  return {};
}

}  // namespace cingulum::view
