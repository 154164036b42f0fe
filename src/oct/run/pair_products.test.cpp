#include "oct/run/pair_products.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/each_device.hpp"
#include "support/oct_draw.hpp"

namespace cingulum::oct {
namespace pair_products_tests {

using cingulum::testing::OctDraw;

// 3 x 3 tiles of 40 x 50 pixels at steps of 31 and 38 that see one scene, two layers, and one tile missing.
struct Mosaic {
  Mosaic() {
    grid.rows = grid.columns = 3;
    grid.tile = {10, 40, 50};
    grid.tiles.resize(9);
    grid.tiles[4].missing = true;
    OctDraw draw(11);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const std::vector<float> scene = draw.volume({1, 120, 150});
      layers.emplace_back();
      for (std::size_t t = 0; t < 9; ++t) {
        const std::size_t row = t / 3 * 31, column = t % 3 * 38;
        grid.tiles[t].stage_px = {static_cast<double>(row) + 1, static_cast<double>(column) - 2};
        HostImage image(40, 50);
        for (std::size_t r = 0; r < 40; ++r) {
          for (std::size_t c = 0; c < 50; ++c) {
            image.at(r, c) = static_cast<double>(scene[(row + r) * 150 + column + c]);
          }
        }
        layers.back().push_back(grid.tiles[t].missing ? HostImage() : image);
      }
    }
  }
  TileGrid grid;
  std::vector<std::vector<HostImage>> layers;
};

class OctPairProducts : public cingulum::testing::EachDevice {};

TEST_P(OctPairProducts, tiles_lie_where_the_host_puts_them_to_the_bit) {
  const Mosaic mosaic;
  PlacementOptions options;
  options.search_px = 5;
  options.smoothing_px = 1;
  ASSERT_OK_AND_ASSIGN(const Placement expected, place_tiles(mosaic.grid, mosaic.layers, options));
  ASSERT_GT(expected.null_pairs, 4u);
  // All tiles at once; and two or three of them, of which groups are made.
  for (const std::uint64_t most : {UINT64_MAX, std::uint64_t{8'000}, std::uint64_t{12'500}}) {
    SCOPED_TRACE(most);
    ASSERT_OK_AND_ASSIGN(const auto products, DevicePairProducts::create(device(), most));
    std::size_t made = 0;
    options.products = [&](const LayerImages& images, const TileGrid& grid, std::span<const TilePair> pairs) {
      auto found = products->make(images, grid, pairs);
      if (found) made = found->size();
      return found;
    };
    ASSERT_OK_AND_ASSIGN(const Placement found, place_tiles(mosaic.grid, mosaic.layers, options));
    EXPECT_EQ(made, (expected.links.size() + expected.null_pairs) * 2 * 11 * 11);
    EXPECT_EQ(found.places_px, expected.places_px);
    EXPECT_EQ(found.threshold, expected.threshold);
    ASSERT_EQ(found.links.size(), expected.links.size());
    for (std::size_t i = 0; i < found.links.size(); ++i) {
      EXPECT_EQ(found.links[i].ncc, expected.links[i].ncc) << i;
      EXPECT_EQ(found.links[i].step_px, expected.links[i].step_px) << i;
    }
  }
  // A device that fails to place a tile says so.
  ASSERT_OK_AND_ASSIGN(const auto small, DevicePairProducts::create(device(), 3000));
  options.products = [&](const LayerImages& images, const TileGrid& grid, std::span<const TilePair> pairs) {
    return small->make(images, grid, pairs);
  };
  EXPECT_TRUE(cingulum::testing::fails_with(place_tiles(mosaic.grid, mosaic.layers, options), ErrorKind::device,
                                            "more than one binding"));
}

CGL_FOR_EACH_DEVICE(OctPairProducts);

}  // namespace pair_products_tests
}  // namespace cingulum::oct
