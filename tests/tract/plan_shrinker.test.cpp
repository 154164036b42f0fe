// The shrinker of random plans, by defects that are known: what it finds is small, still fails, and is told.
#include "support/plan_shrinker.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <set>

namespace cingulum {
namespace {

using test::PlanRecipe;

TEST(PlanShrinker, leaves_only_what_a_defect_needs) {
  // Needs det, a seed beyond x = 1, three voxels along y and few initial directions.
  const auto fails = [](const PlanRecipe& r) {
    const bool seed = std::any_of(r.seeds.begin(), r.seeds.end(), [](const auto& p) { return p.x > 1; });
    return r.options.getter == Getter::det && seed && r.size[1] >= 3 && r.options.max_directions == 2;
  };
  int shrunk = 0;
  for (std::uint32_t number = 0; number < 2000 && shrunk < 5; ++number) {
    PlanRecipe recipe = test::random_recipe(number);
    if (!fails(recipe)) continue;
    ++shrunk;
    const PlanRecipe smallest = test::PlanShrinker(fails, 2000).shrink(recipe);
    EXPECT_TRUE(fails(smallest));
    EXPECT_EQ(smallest.seeds.size(), 1u);
    EXPECT_EQ(smallest.pieces, std::vector<std::uint64_t>{1});
    EXPECT_EQ(smallest.size, (std::array<std::int64_t, 3>{1, 3, 1}));
    EXPECT_EQ(smallest.edges_mm, PlanRecipe{}.edges_mm);
    EXPECT_EQ(smallest.degree, 2);
    EXPECT_EQ(smallest.sphere, "mirror321");
    EXPECT_EQ(smallest.tie, test::PlanTie::none);
    EXPECT_FALSE(smallest.is_float16);
    EXPECT_TRUE(smallest.directions.empty() && smallest.regions.empty());
    EXPECT_EQ(smallest.chunk, 0u);
    // Only options that matter differ from their defaults; a length is halved until it is short.
    test::for_each_option([&](std::string_view name, auto member) {
      if (name == "max_directions" || name == "max_length_mm") return;
      EXPECT_EQ(smallest.options.*member, TrackingOptions{}.*member) << name;
    });
    const std::string text = test::described(smallest);
    EXPECT_NE(text.find("options.max_directions = 2\n"), std::string::npos) << text;
    EXPECT_NE(text.find("size = 1, 3, 1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("seed ("), std::string::npos) << text;
    EXPECT_EQ(text.find("options.step_mm"), std::string::npos) << text;
  }
  EXPECT_EQ(shrunk, 5);
}

TEST(PlanShrinker, asks_no_more_often_than_it_may) {
  std::size_t questions = 0;
  const PlanRecipe recipe = test::random_recipe(3);
  test::PlanShrinker([&](const PlanRecipe&) { return ++questions % 2 == 0; }, 17).shrink(recipe);
  EXPECT_EQ(questions, 17u);
}

// A tracker that leaves out the last point of streamlines from seeds beyond the middle of the image.
class Defective final : public Tracker {
 public:
  explicit Defective(ThreadPool& pool) : cpu_(make_cpu_tracker(pool)) {}

  [[nodiscard]] Status supports(const TrackingPlan& plan, const Field& field) const override {
    return cpu_->supports(plan, field);
  }
  [[nodiscard]] Status prepare(const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                               const GivenDirections* directions) override {
    seeds_ = &seeds;
    one_sided_ = plan.one_sided != 0u;
    return cpu_->prepare(plan, field, seeds, directions);
  }
  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    CGL_TRY(cpu_->track(range, batch, cancel));
    if (!one_sided_ || batch.streamline_count() == 0 || batch.points.size() < 6) return {};
    batch.points.resize(batch.points.size() - 3);
    --batch.offsets.back();
    return {};
  }

 private:
  std::unique_ptr<Tracker> cpu_;
  const Seeds* seeds_ = nullptr;
  bool one_sided_ = false;
};

TEST(PlanShrinker, the_failure_of_a_tracker_tells_the_smallest_plan) {
  static const auto pool = ThreadPool::create(2).value();
  static PlanRecipe recipe;
  for (std::uint32_t number = 0;; ++number) {
    ASSERT_LT(number, 1000u);
    recipe = test::random_recipe(number);
    if (!recipe.options.one_sided || recipe.options.getter != Getter::det || recipe.seeds.size() < 5) continue;
    const auto make = [] { return std::make_unique<Defective>(*pool); };
    if (!test::compare_with_cpu(make, recipe, *pool).difference.empty()) break;
  }
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    test::expect_same_as_cpu([] { return std::make_unique<Defective>(*pool); }, recipe, *pool);
  }
  ASSERT_EQ(failures.size(), 1);
  const std::string text = failures.GetTestPartResult(0).message();
  EXPECT_NE(text.find("the smallest plan that fails"), std::string::npos) << text;
  EXPECT_NE(text.find("options.one_sided = true"), std::string::npos) << text;
  const std::string list = text.substr(text.find("the smallest plan"));
  const auto count = [&](std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = list.find(part); at != std::string::npos; at = list.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("  seed ("), 1u) << list;
  EXPECT_LE(count("options."), 3u) << list;  // one_sided, and the length as long as there are two points
  EXPECT_EQ(count("noise"), 0u) << list;
}

TEST(RandomPlans, have_every_getter_field_tie_rule_and_option) {
  const auto pool = ThreadPool::create(1).value();
  std::set<std::pair<Getter, test::PlanField>> fields;
  std::set<test::PlanTie> ties;
  std::set<test::PlanRegion::Rule> rules;
  std::set<std::string> options, spheres;
  int float16 = 0, shared = 0;
  for (std::uint32_t number = 0; number < 300; ++number) {
    const PlanRecipe recipe = test::random_recipe(number);
    fields.insert({recipe.options.getter, recipe.field});
    ties.insert(recipe.tie);
    spheres.insert(recipe.sphere);
    float16 += recipe.is_float16 ? 1 : 0;
    shared += recipe.chunk > 0 ? 1 : 0;
    for (const auto& region : recipe.regions) rules.insert(region.rule);
    test::for_each_option([&](std::string_view name, auto member) {
      if (recipe.options.*member != TrackingOptions{}.*member) options.insert(std::string(name));
    });
  }
  EXPECT_EQ(fields.size(), 4 * 2 + 1 + 1 + 1u);  // prob, det, closest, ptt on both; peaks, bootstrap, tensors
  EXPECT_EQ(ties.size(), 5u);
  EXPECT_EQ(rules.size(), 4u);
  EXPECT_EQ(spheres.size(), 6u);
  EXPECT_GT(float16, 15);
  EXPECT_GT(shared, 20);
  std::size_t all = 0;
  test::for_each_option([&](std::string_view, auto) { ++all; });
  EXPECT_EQ(options.size(), all - 1);  // min_length_mm is no matter of trackers
}

// Where a plan says that it has a tie, its numbers are equal in bits: the tracker stands on both sides of each rule.
TEST(RandomPlans, ties_are_ties) {
  const auto pool = ThreadPool::create(1).value();
  int thresholds = 0, at_threshold = 0, at_angle = 0, draws = 0;
  for (std::uint32_t number = 0; number < 900; ++number) {
    const PlanRecipe recipe = test::random_recipe(number);
    const auto geometry = test::PlanBuilder(recipe).geometry();
    const TrackingPlan plan = make_tracking_plan(recipe.options, geometry).value();
    if (recipe.tie == test::PlanTie::threshold && number < 200) {
      ++thresholds;
      const test::RandomPlan built = test::build_plan(recipe, *pool);
      const Field& field = built.field;
      for (const std::uint32_t record : field.record_of_voxel) {
        at_threshold += field.records[std::size_t{record} * field.stride + field.channels] == plan.stop_threshold;
      }
    }
    if (recipe.tie == test::PlanTie::angle) {
      ++at_angle;
      if (recipe.field == test::PlanField::peaks) {
        const numerics::Vec3 turned = numerics::normalise(test::to_float(recipe.tie_peak));
        EXPECT_EQ(numerics::dot(turned, {1, 0, 0}), plan.cos_max_angle);
      } else {
        const Sphere sphere = named_sphere(recipe.sphere).value();
        const float cosine = numerics::dot(test::to_float(sphere.directions[recipe.tie_vertices[0]]),
                                           test::to_float(sphere.directions[recipe.tie_vertices[1]]));
        EXPECT_EQ(std::abs(cosine), plan.cos_max_angle);
      }
    }
    if (recipe.tie == test::PlanTie::draw) {
      ++draws;
      const numerics::DrawCounter first{0u, numerics::DrawPurpose::step, 0u, 0u, 0u, 0u};
      const float u = numerics::uniform_from_word(numerics::random_word(plan.key, first, 0u));
      EXPECT_EQ(64 * u, std::floor(64 * u));
      const test::RandomPlan built = test::build_plan(recipe, *pool);
      const float* const record = &built.field.records[built.field.record_of_voxel[0] * built.field.stride];
      EXPECT_EQ(std::count(record, record + built.field.channels, 1.0f), 64);
      EXPECT_EQ(std::count(record, record + built.field.channels, 0.0f),
                static_cast<std::ptrdiff_t>(built.field.channels) - 64);
    }
  }
  EXPECT_GT(thresholds, 10);
  EXPECT_GT(at_threshold, 10 * thresholds);
  EXPECT_GT(at_angle, 15);
  EXPECT_GT(draws, 2);
}

}  // namespace
}  // namespace cingulum
