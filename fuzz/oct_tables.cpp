// Texts beside OCT tiles: info.txt of a raw tile, a table of tiles, shifts of slices.
#include <fmt/format.h>

#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "numerics/classify.hpp"
#include "oct/tiles/motor_shifts.hpp"
#include "oct/tiles/tile_set.hpp"

namespace {

using namespace cingulum;

void check_info(std::string_view text) {
  const auto info = oct::parse_tile_info(text);
  if (!info) return;
  fuzz::require(info->nx > 0 && info->ny > 0 && info->nz > 0 && info->repeats > 0, "a tile without voxels");
  const std::string again = fmt::format(
      "nx: {}\nny: {}\nn_extra: {}\nn_repeat: {}\nwidth: {}\nheight: {}\ntop_z: 0\nbottom_z: {}\nfocus_z: {}\n"
      "stage_x_pos_mm: {}\nstage_y_pos_mm: {}\nstage_z_pos_mm: {}\n",
      info->nx, info->ny, info->extra, info->repeats, info->width_um, info->height_um, info->nz - 1, info->focus,
      info->stage_mm[2], info->stage_mm[1], info->stage_mm[0]);
  const oct::RawTileInfo read = fuzz::expect(oct::parse_tile_info(again), "reading info.txt again");
  fuzz::require(read.nx == info->nx && read.ny == info->ny && read.nz == info->nz && read.extra == info->extra &&
                    read.repeats == info->repeats && read.stage_mm == info->stage_mm,
                "info.txt read otherwise");
}

void check_table(std::string_view text) {
  const auto tiles = oct::parse_tile_table(text);
  if (!tiles || tiles->empty()) return;
  std::string again = "file,slice,ix,iy,x_mm,y_mm,z_mm\n";
  for (const oct::TileRecord& tile : *tiles) {
    again += fmt::format("{},{},{},{},{},{},{}\n", tile.path.native(), tile.slice, tile.column, tile.row,
                         tile.stage_mm[2], tile.stage_mm[1], tile.stage_mm[0]);
  }
  const std::vector<oct::TileRecord> read = fuzz::expect(oct::parse_tile_table(again), "reading a table again");
  fuzz::require(read.size() == tiles->size(), "another number of tiles");
  for (std::size_t i = 0; i < read.size(); ++i) {
    fuzz::require(read[i].path == (*tiles)[i].path && read[i].slice == (*tiles)[i].slice &&
                      read[i].row == (*tiles)[i].row && read[i].column == (*tiles)[i].column &&
                      read[i].stage_mm == (*tiles)[i].stage_mm,
                  "a tile read otherwise");
  }
}

void check_shifts(std::string_view text) {
  const auto shifts = oct::parse_shifts(text);
  if (!shifts || shifts->empty()) return;
  const auto read = fuzz::expect(oct::parse_shifts(oct::shifts_csv(*shifts, {1, 1, 1})), "reading shifts again");
  fuzz::require(read.size() == shifts->size(), "another number of shifts");
  for (std::size_t i = 0; i < read.size(); ++i) {
    fuzz::require(read[i].fixed == (*shifts)[i].fixed && read[i].moving == (*shifts)[i].moving &&
                      read[i].shift_mm == (*shifts)[i].shift_mm,
                  "a shift read otherwise");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  check_info(text);
  check_table(text);
  check_shifts(text);
  return 0;
}
