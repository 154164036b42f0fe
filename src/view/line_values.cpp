#include "view/line_values.hpp"

#include <limits>
#include <span>

#include "formats/element_number.hpp"
#include "formats/tractogram.hpp"

namespace cingulum::view {
namespace {

constexpr std::size_t most_columns = 64;
constexpr std::string_view name_of_groups = "group";

// Where the numbers of a column lie.
struct ColumnPlace {
  std::string name;
  bool of_points = false;
  std::size_t field = 0;
  std::size_t component = 0;
};

std::vector<ColumnPlace> places_of(const TractogramLayout& layout) {
  std::vector<ColumnPlace> places;
  for (const bool of_points : {false, true}) {
    const std::vector<DataField>& fields = of_points ? layout.point_fields : layout.streamline_fields;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].type.code == ElementType::Code::complex) continue;
      for (std::size_t c = 0; c < static_cast<std::size_t>(fields[f].columns); ++c) {
        if (places.size() == most_columns - 1) return places;
        places.push_back({c == 0 ? fields[f].name : fmt::format("{} {}", fields[f].name, c + 1), of_points, f, c});
      }
    }
  }
  return places;
}

void append_values(const TractogramBatch& batch, const TractogramLayout& layout, const ColumnPlace& place,
                   std::vector<float>& values) {
  const DataField& field = (place.of_points ? layout.point_fields : layout.streamline_fields)[place.field];
  const std::vector<std::byte>& data = (place.of_points ? batch.point_data : batch.streamline_data)[place.field];
  const std::size_t stride = static_cast<std::size_t>(field.columns) * field.type.bytes();
  const auto number = [&](std::size_t row) {
    return float_of_element(data.data() + row * stride + place.component * field.type.bytes(), field.type);
  };
  for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
    if (!place.of_points) {
      values.push_back(number(line));
      continue;
    }
    const auto begin = static_cast<std::size_t>(batch.offsets[line]);
    const auto end = static_cast<std::size_t>(batch.offsets[line + 1]);
    double sum = 0;
    for (std::size_t point = begin; point < end; ++point) sum += static_cast<double>(number(point));
    values.push_back(static_cast<float>(sum / static_cast<double>(end - begin)));  // NaN without points
  }
}

// Where several groups hold a line the first of them counts.
void set_groups(const std::vector<TractogramGroup>& groups, std::vector<float>& values) {
  for (std::size_t g = groups.size(); g-- > 0;) {
    for (const std::uint32_t line : groups[g].streamlines) {
      if (line < values.size()) values[line] = static_cast<float>(g);
    }
  }
}

}  // namespace

Result<std::vector<LineColumn>> columns_of_lines(const std::filesystem::path& path) {
  return catch_out_of_memory([&]() -> Result<std::vector<LineColumn>> {
    CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
    std::vector<LineColumn> columns;
    for (ColumnPlace& place : places_of(reader->layout())) columns.push_back({std::move(place.name), {}});
    CGL_TRY_ASSIGN(const std::vector<TractogramGroup> groups, reader->groups());
    if (groups.empty()) return columns;
    LineColumn& column = columns.emplace_back();
    column.name = name_of_groups;
    for (const TractogramGroup& group : groups) column.groups.push_back(group.name);
    return columns;
  });
}

Result<std::vector<std::byte>> values_of_lines(const std::filesystem::path& path, std::size_t column) {
  return catch_out_of_memory([&]() -> Result<std::vector<std::byte>> {
    CGL_TRY_ASSIGN(const auto reader, TractogramReader::open(path));
    const std::vector<ColumnPlace> places = places_of(reader->layout());
    std::vector<TractogramGroup> groups;
    if (column == places.size()) {
      CGL_TRY_ASSIGN(groups, reader->groups());
    }
    if (column >= places.size() && groups.empty()) {
      return fail(ErrorKind::not_found, "{}: there is no column {}", path.filename().string(), column);
    }
    std::vector<float> values;
    TractogramBatch batch;
    while (true) {
      CGL_TRY_ASSIGN(const bool more, reader->next(batch, default_batch_points, true));
      if (!more) break;
      if (groups.empty()) {
        append_values(batch, reader->layout(), places[column], values);
      } else {
        values.resize(values.size() + batch.streamline_count(), std::numeric_limits<float>::quiet_NaN());
      }
    }
    set_groups(groups, values);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
}

}  // namespace cingulum::view
