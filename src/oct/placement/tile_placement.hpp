// Where the tiles of a slice lie: links between neighbours measured on projections, a threshold from pairs that are no
// neighbours, one global least-squares fit of all positions with a weak pull to the motors, and links that contradict
// the others left out. Called by `oct stitch`. It reads projections alone; blend.hpp puts voxels in place.
//
// All planes count, positions are sub-pixel, links that are wrong are found and dropped, and a tile or island without
// links stands where the fitted motor model puts it instead of being piled up or invented.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "oct/placement/ncc_window.hpp"
#include "oct/tiles/mosaic_grid.hpp"
#include "oct/volume/host_volume.hpp"

namespace cingulum::oct {

// Projections as they are compared, by layer and tile, all of one size; missing tiles have none.
using LayerImages = std::vector<std::vector<std::vector<float>>>;
struct TilePair {
  std::size_t from = 0, to = 0;
  ShiftWindow window;
};
// The products of plane_terms_on_host: of each pair, of each layer, at all shifts of the pair's window.
using PairProducts = std::function<Result<std::vector<float>>(const LayerImages& images, const TileGrid& grid,
                                                              std::span<const TilePair> pairs)>;

struct PlacementOptions {
  double smoothing_px = 1.5;   // of the projections
  std::size_t search_px = 12;  // around the motor's step, to either side
  double false_share = 0.01;   // of pairs that are no neighbours above the threshold
  double pull = 1e-3;          // weight of a tile's motor position against a link of correlation 1
  double reject_sigma = 4;     // robust standard deviations of the links' residuals
  double max_rejected = 0.5;   // share of links; beyond, placement fails
  ThreadPool* pool = nullptr;
  PairProducts products = {};  // by a device; absent: by the threads of the pool
};

enum class LinkState : std::uint8_t { used, weak, contradicting, no_overlap };

struct TileLink {
  std::size_t from = 0, to = 0;             // tiles; `to` is right of or below `from`
  std::array<double, 2> step_px = {0, 0};   // measured, row and column
  std::array<double, 2> motor_px = {0, 0};  // the stage's
  double ncc = 0;
  double residual_px = 0;  // of the step against the final places
  LinkState state = LinkState::used;
};
[[nodiscard]] std::string_view link_state_name(LinkState state);

struct Placement {
  std::vector<std::array<double, 2>> places_px;  // of each tile's first pixel, row and column; smallest is 0
  std::vector<TileLink> links;
  std::array<double, 4> motor_matrix = {1, 0, 0, 1};  // true step = matrix x stage's step, rows first
  double threshold = 0;                               // of the correlation
  std::size_t null_pairs = 0;
  std::size_t rejected = 0;                       // links that are not used
  double residual_rms_px = 0;                     // of the links used
  std::vector<std::vector<std::size_t>> islands;  // tiles apart from the largest group; placed by the motors
};

// Logarithms; what is not above zero has that of the smallest value that is.
[[nodiscard]] HostImage log_image(HostImage image);
// The logarithm of each tile's mean over planes; missing tiles have an empty image.
[[nodiscard]] HostImage log_projection(const HostVolume& tile);

// `projections` as log_projection gives them, one per tile of the grid.
[[nodiscard]] Result<Placement> place_tiles(const TileGrid& grid, const std::vector<HostImage>& projections,
                                            const PlacementOptions& options = {});
// The same with several layers of depth, each a set of projections: neighbours are compared in all of them together.
// Each layer has a texture of its own, so more of them see better than one mean over all.
[[nodiscard]] Result<Placement> place_tiles(const TileGrid& grid, const std::vector<std::vector<HostImage>>& layers,
                                            const PlacementOptions& options = {});

// The fit alone, from links: positions by weighted least squares, links judged. Used by place_tiles and by tests.
[[nodiscard]] Status fit_places(const TileGrid& grid, double pull, double reject_sigma, Placement& placement);

}  // namespace cingulum::oct
