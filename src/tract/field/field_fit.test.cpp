#include "tract/field/field_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/analytic_field.hpp"
#include "support/each_device.hpp"
#include "support/little_device.hpp"

namespace cingulum::field_fit_tests {
namespace {

using test::LittleDevice;
using testing::fails_with;

Field tall_field() {
  return test::tensor_field(test::grid(4, 3, 80), [](numerics::Vec3d) { return numerics::Vec3d{0, 0, 1}; });
}

// What was attempted: the bricks of each attempt, 0 for the whole field, and the bytes of the largest.
struct Attempt {
  std::size_t bricks = 0;
  std::uint64_t largest_bytes = 0;
  bool operator==(const Attempt&) const = default;
};

struct Outcome {
  std::vector<Attempt> attempts;
  int given_up = 0;
  Status status;
};

// Attempts number `failing` and before fail with `kind`.
Outcome fit(const Field& field, std::optional<std::uint64_t> free_bytes, const FieldFit& wanted,
            std::size_t failing = 0, ErrorKind kind = ErrorKind::out_of_memory) {
  Outcome outcome;
  outcome.status = fit_field(
      LittleDevice(free_bytes), field, wanted,
      [&](FieldBricks bricks) -> Status {
        outcome.attempts.push_back({bricks.size(), bricks.largest_bytes()});
        if (outcome.attempts.size() <= failing) return fail(kind, "attempt {}", outcome.attempts.size());
        return {};
      },
      [&] { ++outcome.given_up; });
  return outcome;
}

Attempt cut(const Field& field, std::uint64_t most_bytes) {
  const FieldBricks bricks = FieldBricks::cut(field, 2, most_bytes);
  return {bricks.size(), bricks.largest_bytes()};
}

struct Sizes {
  Field field = tall_field();
  std::uint64_t bytes = field.stored_bytes().size();
  std::uint64_t margin = bytes / 4;
  FieldFit wanted{.whole = {.field_bytes = bytes, .tables_bytes = 100, .working_bytes = 1000},
                  .besides_bricks = 2000,
                  .planes_in_reach = 2};
  std::uint64_t need = bytes + 1100;
};

TEST(FieldFit, the_whole_field_is_taken_where_a_quarter_of_it_is_left_besides) {
  const Sizes sizes;
  const auto whole = fit(sizes.field, sizes.need + sizes.margin, sizes.wanted);
  EXPECT_EQ(whole.attempts, (std::vector<Attempt>{{0, 0}}));
  EXPECT_TRUE(whole.status);
  EXPECT_EQ(whole.given_up, 0);
  // A byte less: bricks, of at most three quarters of the field.
  const auto bricks = fit(sizes.field, sizes.need + sizes.margin - 1, sizes.wanted);
  EXPECT_EQ(bricks.attempts, (std::vector<Attempt>{cut(sizes.field, sizes.bytes - sizes.margin - sizes.margin)}));
  EXPECT_GE(bricks.attempts.front().bricks, 2u);
  // A device that does not tell is asked for the whole, and leaves no room when it has less.
  EXPECT_EQ(fit(sizes.field, std::nullopt, sizes.wanted).attempts, (std::vector<Attempt>{{0, 0}}));
  EXPECT_EQ(fit(sizes.field, std::nullopt, sizes.wanted, 1).attempts,
            (std::vector<Attempt>{{0, 0}, cut(sizes.field, sizes.bytes - sizes.margin)}));
}

TEST(FieldFit, bricks_have_what_is_free_besides_other_memory_less_the_margin) {
  const Sizes sizes;
  const auto expected = [&](std::uint64_t most) { return std::vector<Attempt>{cut(sizes.field, most)}; };
  const std::uint64_t besides = sizes.wanted.besides_bricks;
  // More than twice the margin is free: bricks leave the margin. Not more: bricks take all of it.
  const std::uint64_t twice = 2 * sizes.margin;
  EXPECT_EQ(fit(sizes.field, besides + twice + 1, sizes.wanted).attempts, expected(twice + 1 - sizes.margin));
  EXPECT_EQ(fit(sizes.field, besides + twice, sizes.wanted).attempts, expected(twice));
  EXPECT_NE(expected(twice), expected(twice + 1 - sizes.margin)) << "the test would show nothing";
  // Kernels that reach less than the field: bricks of what they reach, and never the whole.
  FieldFit near = sizes.wanted;
  near.most_reached = sizes.bytes - 1;
  const auto plenty = fit(sizes.field, 100 * sizes.bytes, near);
  EXPECT_EQ(plenty.attempts, expected(sizes.bytes - 1 - sizes.margin));
  EXPECT_EQ(fit(sizes.field, std::nullopt, near).attempts, expected(sizes.bytes - 1));
  near.most_reached = sizes.bytes;
  EXPECT_EQ(fit(sizes.field, 100 * sizes.bytes, near).attempts, (std::vector<Attempt>{{0, 0}}));
  near.most_reached = sizes.bytes / 5;
  EXPECT_EQ(fit(sizes.field, 100 * sizes.bytes, near).attempts, expected(sizes.bytes / 5));
}

TEST(FieldFit, smaller_bricks_are_tried_four_times_and_then_the_whole_without_the_margin) {
  const Sizes sizes;
  const std::uint64_t have = sizes.need + sizes.margin - 1;
  std::vector<Attempt> all;
  std::uint64_t most = sizes.bytes - 2 * sizes.margin;
  for (int i = 0; i < 4; ++i, most /= 2) {
    if (const Attempt next = cut(sizes.field, most); next.bricks >= 2) all.push_back(next);
  }
  ASSERT_GE(all.size(), 3u);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i].largest_bytes, all[i - 1].largest_bytes);
  all.push_back({0, 0});
  for (std::size_t failing = 0; failing <= all.size(); ++failing) {
    const auto outcome = fit(sizes.field, have, sizes.wanted, failing);
    const std::size_t made = std::min(failing + 1, all.size());
    EXPECT_EQ(outcome.attempts, std::vector<Attempt>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(made)));
    EXPECT_EQ(outcome.given_up, static_cast<int>(failing)) << "after each failure";
    if (failing < all.size()) {
      EXPECT_TRUE(outcome.status);
    } else {
      EXPECT_TRUE(fails_with(outcome.status, ErrorKind::out_of_memory, "little: tracking needs"));
    }
  }
  // Exactly what the whole needs is enough at last, a byte less is not.
  EXPECT_EQ(fit(sizes.field, sizes.need, sizes.wanted, 4).attempts.back(), (Attempt{0, 0}));
  const auto less = fit(sizes.field, sizes.need - 1, sizes.wanted, 100);
  EXPECT_NE(less.attempts.back(), (Attempt{0, 0}));
  EXPECT_FALSE(less.status);
}

TEST(FieldFit, a_failure_for_another_reason_than_memory_is_the_last_word) {
  const Sizes sizes;
  for (const std::uint64_t have : {100 * sizes.bytes, sizes.need}) {
    const auto outcome = fit(sizes.field, have, sizes.wanted, 1, ErrorKind::io);
    EXPECT_EQ(outcome.attempts.size(), 1u);
    EXPECT_EQ(outcome.given_up, 1);
    EXPECT_TRUE(fails_with(outcome.status, ErrorKind::io, "attempt 1"));
  }
}

TEST(FieldFit, nothing_is_attempted_where_nothing_can_fit) {
  const Sizes sizes;
  for (const std::uint64_t have : {std::uint64_t{0}, sizes.wanted.besides_bricks - 1, sizes.wanted.besides_bricks,
                                   sizes.wanted.besides_bricks + 100}) {
    const auto outcome = fit(sizes.field, have, sizes.wanted);
    EXPECT_TRUE(outcome.attempts.empty()) << have;
    EXPECT_TRUE(fails_with(outcome.status, ErrorKind::out_of_memory, "little: tracking needs")) << have;
  }
}

}  // namespace
}  // namespace cingulum::field_fit_tests
