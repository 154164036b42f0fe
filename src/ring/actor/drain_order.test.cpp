#include "ring/actor/drain_order.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cingulum::ring::drain_order_tests {
namespace {

using Wires = std::vector<std::vector<std::size_t>>;

// Independent of the components: who reaches whom, by trying all paths.
std::vector<std::vector<bool>> reaches(const Wires& wires) {
  const std::size_t count = wires.size();
  std::vector<std::vector<bool>> reach(count, std::vector<bool>(count, false));
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t j : wires[i]) reach[i][j] = true;
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        if (reach[i][k] && reach[k][j]) reach[i][j] = true;
      }
    }
  }
  return reach;
}

TEST(drain_order, puts_senders_before_receivers_and_cycles_together) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const std::size_t count = 1 + random() % 9;
    Wires wires(count);
    for (std::size_t wire = random() % (2 * count); wire > 0; --wire)
      wires[random() % count].push_back(random() % count);
    const auto reach = reaches(wires);
    const std::vector<DrainGroup> order = drain_order(wires);
    std::vector<std::size_t> group_of(count, count);
    for (std::size_t group = 0; group < order.size(); ++group) {
      for (const std::size_t actor : order[group]) {
        ASSERT_EQ(group_of[actor], count) << "an actor is in one group";
        group_of[actor] = group;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NE(group_of[i], count) << "every actor is in a group";
      for (std::size_t j = 0; j < count; ++j) {
        if (i == j) continue;
        ASSERT_EQ(group_of[i] == group_of[j], reach[i][j] && reach[j][i]) << "round " << round;
        if (!reach[i][j] || reach[j][i]) continue;
        ASSERT_LT(group_of[i], group_of[j]) << "round " << round;
      }
    }
  }
}

TEST(drain_order, goes_through_long_chains) {
  Wires wires(100000);
  for (std::size_t i = 1; i < wires.size(); ++i) wires[i].push_back(i - 1);
  const std::vector<DrainGroup> order = drain_order(wires);
  ASSERT_EQ(order.size(), wires.size());
  EXPECT_EQ(order.front(), DrainGroup{wires.size() - 1});
  EXPECT_EQ(order.back(), DrainGroup{0});
}

}  // namespace
}  // namespace cingulum::ring::drain_order_tests
