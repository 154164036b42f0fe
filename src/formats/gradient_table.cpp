#include "formats/gradient_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <system_error>

#include "base/read_file.hpp"

namespace cingulum {
namespace {

using numerics::Vec3d;

constexpr std::uint64_t table_limit_bytes = std::uint64_t{64} << 20U;
// A vector whose squared length is this near to 1 is kept to the bit, so that a table that we wrote reads as it was.
constexpr double unit_square_tolerance = 1e-14;
// Beyond this a vector is not a unit vector that was rounded.
constexpr double unit_length_tolerance = 0.01;

struct Row {
  std::size_t line = 0;  // counted from 1
  std::vector<double> numbers;
};

bool is_separator(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == ',' || c == ';' || c == '\v' || c == '\f';
}

// Numbers line by line; empty lines and what follows a # are left out.
Result<std::vector<Row>> parse_rows(std::string_view text, std::string_view what) {
  std::vector<Row> rows;
  std::size_t line = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark of some editors
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    rest = rest.substr(0, rest.find('#'));
    Row row{line, {}};
    while (true) {
      while (!rest.empty() && is_separator(rest.front())) rest.remove_prefix(1);
      if (rest.empty()) break;
      const auto stop = std::find_if(rest.begin(), rest.end(), is_separator);
      const std::string_view word = rest.substr(0, static_cast<std::size_t>(stop - rest.begin()));
      rest.remove_prefix(word.size());
      std::string_view digits = word;
      if (digits.starts_with('+')) digits.remove_prefix(1);
      double value = 0;
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      const bool whole = parsed.ptr == digits.data() + digits.size();
      if (parsed.ec == std::errc::result_out_of_range && whole) {
        return fail(ErrorKind::corrupt, "{}, line {}: '{}' is too large or too small", what, line, word);
      }
      if (parsed.ec != std::errc{} || !whole) {
        return fail(ErrorKind::corrupt, "{}, line {}: '{}' is not a number", what, line, word.substr(0, 40));
      }
      row.numbers.push_back(value);
    }
    if (!row.numbers.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

Status check_b_value(double b, std::size_t volume) {
  if (std::isfinite(b) && b >= 0) return {};
  return fail(ErrorKind::corrupt, "volume {}: the b-value {} is not a number of s/mm^2 from 0 on", volume, b);
}

// Puts vector and b-value of a volume into the table, checked and normalised.
Status add_volume(GradientTable& table, double b, Vec3d vector, std::size_t& not_unit, double& worst_length) {
  const std::size_t volume = table.size();
  CGL_TRY(check_b_value(b, volume));
  const bool finite = std::isfinite(vector.x) && std::isfinite(vector.y) && std::isfinite(vector.z);
  if (!finite) {
    if (b > default_b0_threshold) {
      return fail(ErrorKind::corrupt, "volume {}: b = {} and the vector {} {} {}", volume, b, vector.x, vector.y,
                  vector.z);
    }
    table.warnings.push_back(fmt::format("volume {}: the vector is not finite, and b = {}: read as zero", volume, b));
    vector = {0, 0, 0};
  }
  const double square = dot(vector, vector);
  if (!std::isfinite(square)) {
    return fail(ErrorKind::corrupt, "volume {}: the vector {} {} {} is too long", volume, vector.x, vector.y, vector.z);
  }
  const double length = std::sqrt(square);
  constexpr double shortest = 1e-6;
  if (length < shortest) {
    if (b > default_b0_threshold) {
      return fail(ErrorKind::corrupt, "volume {}: b = {} and no direction (the vector is {} {} {})", volume, b,
                  vector.x, vector.y, vector.z);
    }
    vector = {0, 0, 0};
  } else {
    if (std::abs(length - 1) > unit_length_tolerance) {
      ++not_unit;
      if (std::abs(length - 1) > std::abs(worst_length - 1)) worst_length = length;
    }
    if (std::abs(square - 1) > unit_square_tolerance) {
      vector = {vector.x / length, vector.y / length, vector.z / length};
    }
  }
  table.b_values.push_back(b);
  table.vectors.push_back(vector);
  return {};
}

void warn_of_lengths(GradientTable& table, std::size_t not_unit, double worst_length) {
  if (not_unit == 0) return;
  table.warnings.push_back(fmt::format(
      "{} of {} vectors are not of unit length (worst {:.6g}): normalised, the b-values are kept as they are", not_unit,
      table.size(), worst_length));
}

Status check_not_empty(const GradientTable& table) {
  if (table.size() > 0) return {};
  return fail(ErrorKind::corrupt, "there is no number in it");
}

}  // namespace

std::string_view gradient_frame_name(GradientFrame frame) {
  switch (frame) {
    case GradientFrame::fsl: return "fsl";
    case GradientFrame::voxel: return "voxel";
    case GradientFrame::world: return "world";
  }
  return "unknown";
}

Result<std::vector<double>> parse_bvals(std::string_view text) {
  return catch_out_of_memory([&]() -> Result<std::vector<double>> {
    CGL_TRY_ASSIGN(const std::vector<Row> value_rows, parse_rows(text, "b-values"));
    std::vector<double> values;
    for (const Row& row : value_rows) values.insert(values.end(), row.numbers.begin(), row.numbers.end());
    if (values.empty()) return fail(ErrorKind::corrupt, "b-values: there is no number in it");
    if (value_rows.size() > 1 && value_rows.size() != values.size()) {
      return fail(ErrorKind::corrupt, "b-values: {} numbers in {} lines are neither one row nor one column",
                  values.size(), value_rows.size());
    }
    for (std::size_t i = 0; i < values.size(); ++i) CGL_TRY(check_b_value(values[i], i));
    return values;
  });
}

Result<GradientTable> parse_fsl_gradients(std::string_view bvals, std::string_view bvecs) {
  return catch_out_of_memory([&]() -> Result<GradientTable> {
    CGL_TRY_ASSIGN(const std::vector<double> values, parse_bvals(bvals));
    CGL_TRY_ASSIGN(const std::vector<Row> vector_rows, parse_rows(bvecs, "b-vectors"));
    GradientTable table;
    table.frame = GradientFrame::fsl;
    const std::size_t count = values.size();
    const auto all_have = [&](std::size_t numbers) {
      return std::all_of(vector_rows.begin(), vector_rows.end(),
                         [&](const Row& row) { return row.numbers.size() == numbers; });
    };
    const bool in_rows = vector_rows.size() == 3 && all_have(count);
    const bool in_columns = vector_rows.size() == count && all_have(3);
    if (!in_rows && !in_columns) {
      std::size_t shortest = std::numeric_limits<std::size_t>::max(), longest = 0;
      for (const Row& row : vector_rows) {
        shortest = std::min(shortest, row.numbers.size());
        longest = std::max(longest, row.numbers.size());
      }
      if (vector_rows.empty()) shortest = 0;
      return fail(ErrorKind::corrupt,
                  "{} b-values need 3 rows of {} numbers, or {} rows of 3; the b-vectors have {} rows of {} numbers",
                  count, count, count, vector_rows.size(),
                  shortest == longest ? fmt::format("{}", longest) : fmt::format("{} to {}", shortest, longest));
    }
    if (in_rows && in_columns) {
      table.warnings.push_back("three volumes: rows and columns cannot be told apart; read as three rows");
    }
    std::size_t not_unit = 0;
    double worst_length = 1;
    for (std::size_t i = 0; i < count; ++i) {
      const Vec3d vector = in_rows
                               ? Vec3d{vector_rows[0].numbers[i], vector_rows[1].numbers[i], vector_rows[2].numbers[i]}
                               : Vec3d{vector_rows[i].numbers[0], vector_rows[i].numbers[1], vector_rows[i].numbers[2]};
      CGL_TRY(add_volume(table, values[i], vector, not_unit, worst_length));
    }
    warn_of_lengths(table, not_unit, worst_length);
    return table;
  });
}

Result<GradientTable> parse_mrtrix_gradients(std::string_view text) {
  return catch_out_of_memory([&]() -> Result<GradientTable> {
    CGL_TRY_ASSIGN(const std::vector<Row> rows, parse_rows(text, "gradient table"));
    GradientTable table;
    table.frame = GradientFrame::world;
    std::size_t not_unit = 0;
    double worst_length = 1;
    for (const Row& row : rows) {
      if (row.numbers.size() < 4) {
        return fail(ErrorKind::corrupt, "line {}: {} numbers instead of x y z b", row.line, row.numbers.size());
      }
      if (row.numbers.size() > 4 && table.size() == 0) {
        table.warnings.push_back(
            fmt::format("{} numbers in a line: those behind x y z b are ignored", row.numbers.size()));
      }
      CGL_TRY(
          add_volume(table, row.numbers[3], {row.numbers[0], row.numbers[1], row.numbers[2]}, not_unit, worst_length));
    }
    CGL_TRY(check_not_empty(table));
    warn_of_lengths(table, not_unit, worst_length);
    return table;
  });
}

Result<GradientTable> read_fsl_gradients(const std::filesystem::path& bvals, const std::filesystem::path& bvecs) {
  return catch_out_of_memory([&]() -> Result<GradientTable> {
    CGL_TRY_ASSIGN(const std::string values, read_text_file(bvals, table_limit_bytes));
    CGL_TRY_ASSIGN(const std::string vectors, read_text_file(bvecs, table_limit_bytes));
    return add_context(parse_fsl_gradients(values, vectors), "reading {} and {}", bvals.native(), bvecs.native());
  });
}

Result<GradientTable> read_mrtrix_gradients(const std::filesystem::path& table) {
  return catch_out_of_memory([&]() -> Result<GradientTable> {
    CGL_TRY_ASSIGN(const std::string text, read_text_file(table, table_limit_bytes));
    return add_file_context(parse_mrtrix_gradients(text), "reading", table.native());
  });
}

std::string format_bvals(const GradientTable& table) {
  return fmt::format("{}\n", fmt::join(table.b_values, " "));
}

std::string format_bvecs(const GradientTable& table) {
  std::string text;
  for (double Vec3d::*component : {&Vec3d::x, &Vec3d::y, &Vec3d::z}) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : " ", table.vectors[i].*component);
    }
    text += "\n";
  }
  return text;
}

std::string format_mrtrix_table(const GradientTable& table) {
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Vec3d& vector = table.vectors[i];
    text += fmt::format("{} {} {} {}\n", vector.x, vector.y, vector.z, table.b_values[i]);
  }
  return text;
}

std::vector<Vec3d> directions_in_image_axes(const GradientTable& table, GradientFrame frame,
                                            const Affine& voxel_to_world) {
  std::vector<Vec3d> directions = table.vectors;
  if (frame == GradientFrame::fsl && voxel_to_world.determinant() > 0) {
    for (Vec3d& direction : directions) direction.x = -direction.x;
  }
  if (frame != GradientFrame::world) return directions;
  // The image axes as unit vectors in the world; a direction's components along them, also where they are not at right
  // angles.
  Affine axes;
  for (int c = 0; c < 3; ++c) {
    const Vec3d column{voxel_to_world.at(0, c), voxel_to_world.at(1, c), voxel_to_world.at(2, c)};
    const double edge = length(column);
    for (int r = 0; r < 3; ++r) axes.at(r, c) = voxel_to_world.at(r, c) / edge;
  }
  const auto to_axes = axes.inverse();
  if (!to_axes) return directions;  // no image has such an affine: readers refuse it
  for (Vec3d& direction : directions) {
    const Vec3d turned = to_axes->rotate(direction);
    const double turned_length = length(turned);
    direction = turned_length > 0 ? Vec3d{turned.x / turned_length, turned.y / turned_length, turned.z / turned_length}
                                  : Vec3d{0, 0, 0};
  }
  return directions;
}

std::vector<GradientShell> find_shells(const GradientTable& table, double b0_threshold, double width) {
  std::vector<std::size_t> order(table.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return table.b_values[a] < table.b_values[b]; });
  std::vector<GradientShell> shells;
  bool in_b0 = false;
  for (const std::size_t volume : order) {
    const double b = table.b_values[volume];
    const bool b0 = b <= b0_threshold;
    if (shells.empty() || b0 != in_b0 || (!b0 && b - shells.back().largest > width)) {
      shells.push_back({0, b, b, {}});
      in_b0 = b0;
    }
    shells.back().largest = b;
    shells.back().volumes.push_back(volume);
  }
  for (GradientShell& shell : shells) {
    std::sort(shell.volumes.begin(), shell.volumes.end());
    double sum = 0;
    for (const std::size_t volume : shell.volumes) sum += table.b_values[volume];
    shell.b_value = sum / static_cast<double>(shell.volumes.size());
  }
  return shells;
}

}  // namespace cingulum
