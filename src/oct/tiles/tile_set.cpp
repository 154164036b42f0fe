#include "oct/tiles/tile_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/argument_name.hpp"
#include "base/quantity.hpp"
#include "base/read_file.hpp"
#include "formats/byte_stream.hpp"
#include "oct/tiles/csv_cells.hpp"

namespace cingulum::oct {
namespace {

namespace fs = std::filesystem;

std::string tile_name(std::size_t slice, std::size_t row, std::size_t column) {
  return fmt::format("x{:02} y{:02} z{:02}", column, row, slice);
}

// "tile_x03_y00_z12".
std::optional<std::array<std::size_t, 3>> parse_folder_name(std::string_view name) {
  std::array<std::size_t, 3> ids{};  // x, y, z
  constexpr std::array<std::string_view, 3> marks = {"tile_x", "_y", "_z"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!name.starts_with(marks[i])) return std::nullopt;
    name.remove_prefix(marks[i].size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ids[i]);
    if (error != std::errc() || end == name.data()) return std::nullopt;
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  }
  if (!name.empty()) return std::nullopt;
  return ids;
}

template <class Value>
Status check_same(const fs::path& where, const char* what, const Value& here, const Value& first) {
  if (here == first) return {};
  return fail_file(where.native(), ErrorKind::corrupt, "{}: {} is {}, that of the first tile is {}", where.native(),
                   what, here, first);
}

Result<TileSet> open_raw_tiles(const fs::path& folder, const TileSetOptions& options) {
  TileSet set;
  set.raw = true;
  std::error_code error;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory() && parse_folder_name(entry.path().filename().native())) folders.push_back(entry.path());
  }
  if (error) return fail_file(folder.native(), ErrorKind::io, "reading {}: {}", folder.native(), error.message());
  if (folders.empty()) {
    return fail_file(folder.native(), ErrorKind::not_found, "{}: no folder tile_x##_y##_z## is in it", folder.native());
  }
  std::sort(folders.begin(), folders.end());
  std::optional<RawTileInfo> first;
  for (const fs::path& path : folders) {
    const auto ids = *parse_folder_name(path.filename().native());
    const fs::path info_path = path / "info.txt";
    CGL_TRY_ASSIGN(const std::string text, read_text_file(info_path, std::uint64_t{1} << 20U));
    CGL_TRY_ASSIGN(const RawTileInfo info, add_file_context(parse_tile_info(text), "reading", info_path.native()));
    if (!first) {
      first = info;
      set.shape = {info.nz, info.ny, info.nx};
      set.extra_lines = info.extra;
      set.repeats = info.repeats;
      set.focus_plane = info.focus;
    }
    CGL_TRY(check_same(info_path, "nx", info.nx, first->nx));
    CGL_TRY(check_same(info_path, "ny", info.ny, first->ny));
    CGL_TRY(check_same(info_path, "bottom_z - top_z + 1", info.nz, first->nz));
    CGL_TRY(check_same(info_path, "n_extra", info.extra, first->extra));
    CGL_TRY(check_same(info_path, "n_repeat", info.repeats, first->repeats));
    CGL_TRY(check_same(info_path, "width", info.width_um, first->width_um));
    CGL_TRY(check_same(info_path, "height", info.height_um, first->height_um));
    if (info.repeats > 1 && !options.average_repeats) {
      return fail_file(info_path.native(), ErrorKind::unavailable,
                       "{}: n_repeat is {}; {} takes the mean of repeated B-scans", info_path.native(), info.repeats,
                       argument_name("average_repeats"));
    }
    TileRecord tile{.slice = ids[2], .row = ids[1], .column = ids[0], .stage_mm = info.stage_mm, .path = path};
    for (const auto& entry : fs::directory_iterator(path, error)) {
      const std::string name = entry.path().filename().native();
      if (name.starts_with("image_") && name.ends_with(".bin")) tile.images.push_back(entry.path());
    }
    std::sort(tile.images.begin(), tile.images.end());
    CGL_TRY(check_raw_tile(set, tile));
    set.tiles.push_back(std::move(tile));
  }
  if (!options.axial_step_um) {
    return fail_file(folder.native(), ErrorKind::not_found, "{}: info.txt does not state the axial step; give it by {}",
                     folder.native(), argument_name("axial_step"));
  }
  set.voxel_um = {*options.axial_step_um, first->height_um / static_cast<double>(first->ny),
                  first->width_um / static_cast<double>(first->nx)};
  return set;
}

Result<TileSet> open_table(const fs::path& path, const TileSetOptions& options) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(path));
  TileSet set;
  CGL_TRY_ASSIGN(set.tiles, add_file_context(parse_tile_table(text), "reading", path.native()));
  std::optional<VolumeDescription> first;
  for (TileRecord& tile : set.tiles) {
    tile.path = path.parent_path() / tile.path;
    VolumeReadOptions reading;
    reading.unit = options.unit;
    CGL_TRY_ASSIGN(const VolumeDescription description,
                   add_context(describe_volume(tile.path, reading), "reading {}: line {}", path.native(), tile.line));
    if (!first) {
      first = description;
      set.shape = {description.shape[0], description.shape[1], description.shape[2]};
      set.voxel_um = description.voxel_um;
    }
    constexpr std::array<const char*, 3> axes = {"z", "y", "x"};
    for (std::size_t d = 0; d < 3; ++d) {
      CGL_TRY(check_same(tile.path, fmt::format("the size along {}", axes[d]).c_str(), description.shape[d],
                         first->shape[d]));
      if (std::abs(description.voxel_um[d] - first->voxel_um[d]) > 1e-6 * first->voxel_um[d]) {
        CGL_TRY(check_same(tile.path, fmt::format("the step along {} in micrometres", axes[d]).c_str(),
                           description.voxel_um[d], first->voxel_um[d]));
      }
    }
  }
  if (set.tiles.empty()) {
    return fail_file(path.native(), ErrorKind::corrupt, "reading {}: it names no tile", path.native());
  }
  return set;
}

// Sorts, refuses doubled ids, and finds holes: tiles inside a slice's rectangle, slices between the first and the last.
Status check_grid(const fs::path& path, const TileSetOptions& options, TileSet& set) {
  const auto ids = [](const TileRecord& tile) { return std::array{tile.slice, tile.row, tile.column}; };
  std::sort(set.tiles.begin(), set.tiles.end(),
            [&](const TileRecord& a, const TileRecord& b) { return ids(a) < ids(b); });
  std::map<std::size_t, std::set<std::pair<std::size_t, std::size_t>>> slices;
  for (std::size_t i = 0; i < set.tiles.size(); ++i) {
    const TileRecord& tile = set.tiles[i];
    if (i > 0 && ids(tile) == ids(set.tiles[i - 1])) {
      return fail_file(path.native(), ErrorKind::corrupt, "{}: tile {} is there twice: {} and {}", path.native(),
                       tile_name(tile.slice, tile.row, tile.column), set.tiles[i - 1].path.filename().native(),
                       tile.path.filename().native());
    }
    slices[tile.slice].insert({tile.row, tile.column});
  }
  for (std::size_t slice = slices.begin()->first; slice <= slices.rbegin()->first; ++slice) {
    const auto found = slices.find(slice);
    if (found == slices.end()) {
      set.missing.push_back(fmt::format("slice z{:02}", slice));
      continue;
    }
    std::array<std::size_t, 2> low = {SIZE_MAX, SIZE_MAX};
    std::array<std::size_t, 2> high = {0, 0};
    for (const auto& [row, column] : found->second) {
      low = {std::min(low[0], row), std::min(low[1], column)};
      high = {std::max(high[0], row), std::max(high[1], column)};
    }
    for (std::size_t row = low[0]; row <= high[0]; ++row) {
      for (std::size_t column = low[1]; column <= high[1]; ++column) {
        if (!found->second.contains({row, column})) {
          set.missing.push_back(fmt::format("tile {}", tile_name(slice, row, column)));
        }
      }
    }
  }
  if (set.missing.empty() || options.allow_missing) return {};
  const std::size_t more = set.missing.size() - 1;
  return fail_file(path.native(), ErrorKind::not_found, "{}: {} is missing{}; {} goes on without what is missing",
                   path.native(), set.missing.front(), more > 0 ? fmt::format(", and {} more", more) : "",
                   argument_name("allow_missing"));
}

}  // namespace

std::vector<std::size_t> TileSet::slices() const {
  std::vector<std::size_t> ids;
  for (const TileRecord& tile : tiles) {
    if (ids.empty() || ids.back() != tile.slice) ids.push_back(tile.slice);
  }
  return ids;
}

Result<std::vector<TileRecord>> parse_tile_table(std::string_view text) {
  constexpr std::array<std::string_view, 7> names = {"file", "slice", "ix", "iy", "x_mm", "y_mm", "z_mm"};
  std::array<std::size_t, 7> column{};
  std::vector<TileRecord> tiles;
  std::size_t number = 0;
  std::size_t cells_of_header = 0;
  std::string_view remaining = text;
  while (!remaining.empty()) {
    const std::size_t end = std::min(remaining.find('\n'), remaining.size());
    const std::string_view line = trim(remaining.substr(0, end));
    remaining.remove_prefix(std::min(end + 1, remaining.size()));
    ++number;
    if (line.empty()) continue;
    const std::vector<std::string_view> cells = csv_cells(line);
    if (cells_of_header == 0) {
      cells_of_header = cells.size();
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto found = std::find(cells.begin(), cells.end(), names[i]);
        if (found == cells.end()) {
          return fail(ErrorKind::corrupt, "its first line has no column '{}' (file,slice,ix,iy,x_mm,y_mm,z_mm)",
                      names[i]);
        }
        column[i] = static_cast<std::size_t>(found - cells.begin());
      }
      continue;
    }
    if (cells.size() != cells_of_header) {
      return fail(ErrorKind::corrupt, "line {} has {} cells, the first line has {}", number, cells.size(),
                  cells_of_header);
    }
    TileRecord tile;
    std::array<std::size_t, 3> ids{};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto value = parse_integer(cells[column[1 + i]]);
      if (!value || *value < 0) {
        return fail(ErrorKind::corrupt, "line {}: {} '{}' is no number from 0 on", number, names[1 + i],
                    cells[column[1 + i]]);
      }
      ids[i] = static_cast<std::size_t>(*value);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const auto value = parse_real(cells[column[4 + i]]);
      if (!value) {
        return fail(ErrorKind::corrupt, "line {}: {} '{}' is no number", number, names[4 + i], cells[column[4 + i]]);
      }
      tile.stage_mm[2 - i] = *value;
    }
    tile.slice = ids[0];
    tile.column = ids[1];
    tile.row = ids[2];
    tile.path = fs::path(cells[column[0]]);
    tile.line = number;
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

Result<RawTileInfo> parse_tile_info(std::string_view text) {
  std::map<std::string, std::string, std::less<>> fields;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string key(trim(line.substr(0, colon)));
    if (!fields.emplace(key, trim(line.substr(colon + 1))).second) {
      return fail(ErrorKind::corrupt, "key '{}' is there twice", key);
    }
  }
  RawTileInfo info;
  const auto number = [&](std::string_view key, std::optional<double> otherwise) -> Result<double> {
    const auto found = fields.find(key);
    if (found == fields.end()) {
      if (otherwise) return *otherwise;
      return fail(ErrorKind::corrupt, "key '{}' is missing", key);
    }
    const auto value = parse_real(found->second);
    if (!value) return fail(ErrorKind::corrupt, "{}: '{}' is no number", key, found->second);
    return *value;
  };
  const auto count = [&](std::string_view key, double least, std::optional<double> otherwise,
                         std::size_t& to) -> Status {
    CGL_TRY_ASSIGN(const double value, number(key, otherwise));
    if (!(value >= least && value <= 1e6 && value == std::floor(value))) {
      return fail(ErrorKind::corrupt, "{}: {} is no whole number from {} to a million", key, value, least);
    }
    to = static_cast<std::size_t>(value);
    return {};
  };
  CGL_TRY(count("nx", 1, std::nullopt, info.nx));
  CGL_TRY(count("ny", 1, std::nullopt, info.ny));
  CGL_TRY(count("n_extra", 0, 0.0, info.extra));
  CGL_TRY(count("n_repeat", 1, 1.0, info.repeats));
  CGL_TRY_ASSIGN(info.width_um, number("width", std::nullopt));
  CGL_TRY_ASSIGN(info.height_um, number("height", std::nullopt));
  if (!(info.width_um > 0 && info.height_um > 0)) {
    return fail(ErrorKind::corrupt, "width {} and height {} are micrometres above 0", info.width_um, info.height_um);
  }
  CGL_TRY_ASSIGN(const double top, number("top_z", std::nullopt));
  CGL_TRY_ASSIGN(const double bottom, number("bottom_z", std::nullopt));
  const double planes = bottom - top + 1;
  if (!(planes >= 1 && planes <= 1e6 && planes == std::floor(planes))) {
    return fail(ErrorKind::corrupt, "top_z {} and bottom_z {}: {} planes", top, bottom, planes);
  }
  info.nz = static_cast<std::size_t>(planes);
  CGL_TRY_ASSIGN(const double focus, number("focus_z", top));
  info.focus = focus - top;
  constexpr std::array<std::string_view, 3> stage = {"stage_z_pos_mm", "stage_y_pos_mm", "stage_x_pos_mm"};
  for (std::size_t d = 0; d < 3; ++d) {
    CGL_TRY_ASSIGN(info.stage_mm[d], number(stage[d], std::nullopt));
  }
  return info;
}

Result<TileSet> open_tiles(const fs::path& path, const TileSetOptions& options) {
  return catch_out_of_memory([&]() -> Result<TileSet> {
    std::error_code error;
    const bool folder = fs::is_directory(path, error);
    CGL_TRY_ASSIGN(TileSet set, folder ? open_raw_tiles(path, options) : open_table(path, options));
    CGL_TRY(check_grid(path, options, set));
    return set;
  });
}

std::uint64_t raw_value_count(const TileSet& set) {
  return std::uint64_t{set.shape[0]} * (set.shape[2] + set.extra_lines) * set.shape[1] * set.repeats;
}

// All image files of a tile hold whole B-scans and together the voxels that info.txt states.
Status check_raw_tile(const TileSet& set, const TileRecord& tile) {
  const std::uint64_t scan_bytes = std::uint64_t{4} * set.shape[0] * (set.shape[2] + set.extra_lines);
  std::uint64_t bytes = 0;
  for (const fs::path& image : tile.images) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(image, error);
    if (error) return fail_file(image.native(), ErrorKind::io, "{}: {}", image.native(), error.message());
    if (size % scan_bytes != 0) {
      return fail_file(image.native(), ErrorKind::corrupt,
                       "{}: {} bytes are not whole B-scans of {} bytes ({} x {} x 4)", image.native(), size, scan_bytes,
                       set.shape[0], set.shape[2] + set.extra_lines);
    }
    bytes += size;
  }
  const std::uint64_t expected = raw_value_count(set) * 4;
  if (bytes == expected) return {};
  return fail_file(tile.path.native(), ErrorKind::corrupt,
                   "{}: image_*.bin hold {} bytes, info.txt states {} ({} x {} x {} x {} repeats x 4)",
                   tile.path.native(), bytes, expected, set.shape[0], set.shape[2] + set.extra_lines, set.shape[1],
                   set.repeats);
}

Status read_raw_values(const TileRecord& tile, std::uint64_t first, std::span<float> to) {
  static_assert(std::endian::native == std::endian::little, "raw tiles are little-endian");
  std::uint64_t skipped = first * sizeof(float);
  std::span<std::byte> remaining = std::as_writable_bytes(to);
  for (const fs::path& image : tile.images) {
    if (remaining.empty()) return {};
    CGL_TRY_ASSIGN(const InputFile file, add_file_context(InputFile::open(image), "reading", image.native()));
    if (skipped >= file.size()) {
      skipped -= file.size();
      continue;
    }
    const std::span<std::byte> here = remaining.first(std::min<std::uint64_t>(remaining.size(), file.size() - skipped));
    CGL_TRY_ASSIGN(const std::size_t got,
                   add_file_context(file.read_once_at(skipped, here), "reading", image.native()));
    if (got != here.size()) {
      return fail_file(image.native(), ErrorKind::corrupt, "{}: it was cut at byte {} while it was read",
                       image.native(), skipped + got);
    }
    remaining = remaining.subspan(here.size());
    skipped = 0;
  }
  if (remaining.empty()) return {};
  return fail_file(tile.path.native(), ErrorKind::corrupt, "{}: its files became shorter by {} bytes while it was read",
                   tile.path.native(), remaining.size());
}

Result<HostVolume> read_tile(const TileSet& set, const TileRecord& tile, std::uint64_t& replaced,
                             const CancelToken& cancel, ThreadPool* pool) {
  return catch_out_of_memory([&]() -> Result<HostVolume> {
    if (!set.raw) {
      VolumeReadOptions options;
      options.cancel = cancel;
      options.pool = pool;
      options.unit = "micrometer";  // its size was read when the set was opened
      CGL_TRY_ASSIGN(VolumeFile file, read_volume(tile.path, options));
      replaced += file.replaced_values;
      return std::move(file.volume);
    }
    CGL_TRY(check_raw_tile(set, tile));
    const std::size_t lines = set.shape[2] + set.extra_lines;
    // Row after row: of a tile in the order of its files no more is in memory than the B-scans of one.
    std::vector<float> raw(set.shape[0] * lines * set.repeats);
    HostVolume volume(set.shape[0], set.shape[1], lines);
    const float share = static_cast<float>(set.repeats);
    // Blocks of planes and columns that stay in the cache while the order of both is exchanged.
    constexpr std::size_t block = 32;
    for (std::size_t row = 0; row < volume.rows; ++row) {
      CGL_TRY(cancel.check());
      CGL_TRY(read_raw_values(tile, row * raw.size(), raw));
      replaced += replace_non_finite(raw);
      for (std::size_t first_plane = 0; first_plane < volume.planes; first_plane += block) {
        const std::size_t end_plane = std::min(volume.planes, first_plane + block);
        for (std::size_t first_column = 0; first_column < lines; first_column += block) {
          const std::size_t end_column = std::min(lines, first_column + block);
          for (std::size_t plane = first_plane; plane < end_plane; ++plane) {
            for (std::size_t column = first_column; column < end_column; ++column) {
              float sum = 0;
              for (std::size_t repeat = 0; repeat < set.repeats; ++repeat) {
                sum += raw[(repeat * lines + column) * volume.planes + plane];
              }
              volume.at(plane, row, column) = set.repeats > 1 ? sum / share : sum;
            }
          }
        }
      }
    }
    return volume;
  });
}

}  // namespace cingulum::oct
