#include "oct/run/pair_products.hpp"

#include <algorithm>

namespace cingulum::oct {
namespace {

// Images that are on the device at once: of as many pairs as they serve.
constexpr std::uint64_t image_bytes = std::uint64_t{256} << 20;

}  // namespace

std::uint64_t DevicePairProducts::bytes_for(std::size_t tiles, std::size_t layers, std::array<std::size_t, 2> size) {
  const std::uint64_t tile = sizeof(float) * layers * size[0] * size[1];
  const std::uint64_t images = std::max(2 * tile, std::min(image_bytes, tiles * tile));
  // Sums of the rows of all products of a launch, their descriptions and results; blocks are up to an eighth larger.
  const std::uint64_t sums = OctKernels::most_products * (sizeof(float) * (size[0] + 1) + 64);
  return (images + sums) / 8 * 9;
}

Result<std::unique_ptr<DevicePairProducts>> DevicePairProducts::create(Device& device, std::uint64_t most_voxels) {
  auto products = std::unique_ptr<DevicePairProducts>(new DevicePairProducts());
  CGL_TRY_ASSIGN(products->kernels_, OctKernels::create(device, most_voxels));
  CGL_TRY_ASSIGN(products->queue_, device.create_queue());
  products->most_voxels_ = std::min<std::uint64_t>(products->kernels_->most_voxels(), image_bytes / sizeof(float));
  return products;
}

Result<std::vector<float>> DevicePairProducts::make(const LayerImages& images, const TileGrid& grid,
                                                    std::span<const TilePair> pairs) {
  std::vector<float> products;
  const std::uint64_t of_tile = std::uint64_t{images.size()} * grid.tile[1] * grid.tile[2];
  // Two tiles at least: what they have too much is refused where they are put.
  const auto most_tiles = static_cast<std::size_t>(std::max<std::uint64_t>(2, most_voxels_ / of_tile));
  // Pairs in their order, as long as their tiles fit: neighbours follow each other.
  std::size_t first = 0;
  std::vector<std::size_t> tiles;
  const auto end_group = [&](std::size_t end) -> Status {
    if (end > first) CGL_TRY(make_group(images, grid, pairs.subspan(first, end - first), tiles, products));
    first = end;
    tiles.clear();
    return {};
  };
  const auto add = [&](std::size_t tile) {
    if (std::find(tiles.begin(), tiles.end(), tile) == tiles.end()) tiles.push_back(tile);
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::size_t before = tiles.size();
    add(pairs[i].from);
    add(pairs[i].to);
    if (tiles.size() <= most_tiles) continue;
    tiles.resize(before);
    CGL_TRY(end_group(i));
    add(pairs[i].from);
    add(pairs[i].to);
  }
  CGL_TRY(end_group(pairs.size()));
  return products;
}

Status DevicePairProducts::make_group(const LayerImages& images, const TileGrid& grid, std::span<const TilePair> pairs,
                                      std::span<const std::size_t> tiles, std::vector<float>& products) {
  const auto narrow = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  const VolumeShape shape{narrow(tiles.size() * images.size()), narrow(grid.tile[1]), narrow(grid.tile[2])};
  CGL_TRY_ASSIGN(const DeviceVolume planes, kernels_->allocate(shape));
  std::uint64_t at = 0;
  for (const std::size_t tile : tiles) {
    for (const auto& layer : images) {
      CGL_TRY(queue_->upload(*planes.buffer, at, std::as_bytes(std::span(layer[tile]))));
      at += layer[tile].size() * sizeof(float);
    }
  }
  CGL_TRY(queue_->synchronise());
  const auto plane_of = [&](std::size_t tile, std::size_t layer) {
    const auto number = static_cast<std::size_t>(std::find(tiles.begin(), tiles.end(), tile) - tiles.begin());
    return narrow(number * images.size() + layer);
  };
  std::vector<PlanePair> compared;
  for (const TilePair& pair : pairs) {
    for (std::size_t layer = 0; layer < images.size(); ++layer) {
      compared.push_back({plane_of(pair.from, layer), plane_of(pair.to, layer), pair.window});
    }
  }
  CGL_TRY_ASSIGN(const std::vector<float> made, kernels_->shift_products(*queue_, planes, planes, 0.0f, compared));
  products.insert(products.end(), made.begin(), made.end());
  return {};
}

}  // namespace cingulum::oct
