// Tracking on every GPU that is there equals tracking on the CPU, bit for bit: random plans (contract, section 7;
// CINGULUM_TEST_PLANS sets how many), fields of the default shapes, pages that run out, several devices that share the
// seeds of one run, and whole files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "formats/tractogram.hpp"
#include "support/card_ballast.hpp"
#include "support/each_tracker.hpp"
#include "support/long_tests.hpp"
#include "support/memory_jobs.hpp"
#include "support/plan_shrinker.hpp"
#include "support/random_plan.hpp"
#include "support/shaped_plan.hpp"
#include "support/temporary_folder.hpp"
#include "tract/run/device_choice.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {
namespace {

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

class DeviceTracking : public testing::EachTracker {
 protected:
  // More seeds than a GPU has warps; fewer where the CPU does the work.
  [[nodiscard]] std::uint32_t seeds(Getter getter) const {
    const bool fast = !is(Backend::cpu) && !device().capabilities().software;
    return number_from("CINGULUM_TEST_SEEDS", (getter == Getter::ptt ? 300u : 3000u) / (fast ? 1u : 15u));
  }
  // A device that is a CPU is slow: its plans are cut down. CINGULUM_TEST_LONG=1 runs them whole there, too.
  [[nodiscard]] bool is_emulated() const { return EachTracker::is_emulated() && !test::may_take_long(); }

  std::uint64_t used_once_ = 0;
};

// What means something on the CPU, too; the CPU is what the others are compared with.
class EveryDeviceTracking : public DeviceTracking {};
class CardTracking : public DeviceTracking {};

TEST_P(DeviceTracking, random_plans_have_the_bits_of_the_cpu) {
  const std::uint32_t plans = number_from("CINGULUM_TEST_PLANS", 100);
  const std::uint32_t first = number_from("CINGULUM_TEST_FIRST_PLAN", 0);
  ASSERT_GT(plans, 0u);
  std::uint64_t points = 0;
  int failed = 0;
  for (std::uint32_t number = first; number < first + plans && failed < (is_emulated() ? 1 : 3); ++number) {
    test::PlanRecipe recipe = test::random_recipe(number);
    if (is_emulated()) test::cut_down(recipe);
    const auto failures = [] {
      return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    };
    const int before = failures();
    points += test::expect_same_as_cpu([&] { return tracker(); }, recipe, pool(), is_emulated() ? 100 : 300);
    failed += failures() > before ? 1 : 0;
  }
  std::printf("%s: %u plans, %llu points equal\n", GetParam(), plans, static_cast<unsigned long long>(points));
  if (failed == 0) {
    EXPECT_GT(points, (is_emulated() ? 10u : 100u) * plans);
  }
}

// For shares of the memory that a run takes, and for every allocation that fails, the bits are the CPU's or the plan
// is refused before work begins; and the device goes on.
TEST_P(DeviceTracking, short_memory_gives_the_same_bits_or_a_refusal_before_work_begins) {
  MemoryBudget& budget = device().budget();
  const std::uint64_t base = budget.used_bytes();
  constexpr std::pair<Getter, bool> tall[] = {
      {Getter::prob, true}, {Getter::prob, false}, {Getter::det, true}, {Getter::ptt, false}, {Getter::tensor, false}};
  const bool few = is_emulated() || std::getenv("CINGULUM_TEST_SEEDS") != nullptr;
  int refused = 0, tracked = 0, smaller = 0;
  for (std::uint32_t number = 0; number < (few ? 2u : std::size(tall)); ++number) {
    test::RandomPlan plan = test::tall_plan(tall[number].first, tall[number].second, number);
    if (few) test::cut_down(plan);
    const test::Job job(std::move(plan), pool());
    SCOPED_TRACE(job.plan.name);
    std::uint64_t need = 0;
    {
      const auto whole = tracker();
      ASSERT_TRUE(job.prepare(*whole));
      ASSERT_TRUE(job.tracks_the_same(*whole));
      need = budget.used_bytes() - base;
    }
    for (const std::uint64_t percent : {100u, 50u, 20u, 5u, 1u}) {
      const auto short_of_memory = tracker();
      budget.set_limit(base + need * percent / 100);
      const Status prepared = job.prepare(*short_of_memory);
      if (prepared) {
        ++tracked;
        smaller += percent < 100 ? 1 : 0;
        EXPECT_TRUE(job.tracks_the_same(*short_of_memory)) << percent << " % of " << need;
      } else {
        ++refused;
        EXPECT_EQ(prepared.error().kind(), ErrorKind::out_of_memory) << prepared.error().message();
        EXPECT_NE(prepared.error().message().find("device cpu"), std::string::npos) << prepared.error().message();
        EXPECT_EQ(budget.used_bytes(), base) << "nothing is kept";
      }
      budget.set_limit(std::nullopt);
      if (!prepared) {
        ASSERT_TRUE(job.prepare(*short_of_memory)) << "after a refusal the same tracker works";
        EXPECT_TRUE(job.tracks_the_same(*short_of_memory));
      }
    }
    bool all_passed = number > 0;
    for (std::uint64_t failing = 1; !all_passed; ++failing) {
      ASSERT_LT(failing, 200u);
      const auto unlucky = tracker();
      const std::uint64_t before = budget.allocations();
      budget.fail_nth_allocation(failing);
      const Status prepared = job.prepare(*unlucky);
      if (!prepared) {
        EXPECT_EQ(prepared.error().kind(), ErrorKind::out_of_memory) << prepared.error().message();
      } else {
        EXPECT_TRUE(job.tracks_the_same(*unlucky)) << "allocation " << failing;
      }
      budget.fail_nth_allocation(0);
      all_passed = budget.allocations() - before < failing;
    }
  }
  EXPECT_EQ(budget.used_bytes(), base);
  EXPECT_GT(tracked, 1);
  EXPECT_GT(refused, 1);
  std::printf("%s: %d tracked (%d with less memory than the whole field takes), %d refused\n", GetParam(), tracked,
              smaller, refused);
}

// A card that is really full: all of its memory but 64 MiB is taken.
TEST_P(CardTracking, where_the_card_is_full_tracks_the_same_or_refuses_before_work_begins) {
  const test::Job job(test::tall_plan(Getter::prob, false, 0), pool());
  int tracked = 0;
  for (int round = 0; round < 20; ++round) {
    auto ballast = testing::take_all_but(device(), std::uint64_t{64} << 20);
    const auto short_of_memory = tracker();
    const Status prepared = job.prepare(*short_of_memory);
    if (prepared) {
      ++tracked;
      EXPECT_TRUE(job.tracks_the_same(*short_of_memory)) << "round " << round;
    } else {
      EXPECT_EQ(prepared.error().kind(), ErrorKind::out_of_memory) << prepared.error().message();
    }
    ballast.clear();
    ASSERT_TRUE(job.prepare(*short_of_memory)) << "then there is room again";
    EXPECT_TRUE(job.tracks_the_same(*short_of_memory));
  }
  std::printf("%s: tracked in %d of 20 rounds with 64 MiB left\n", GetParam(), tracked);
}

TEST_P(DeviceTracking, default_shapes_have_the_bits_of_the_cpu) {
  struct {
    Getter getter;
    int degree;
    const char* sphere;
  } const shapes[] = {{Getter::boot, 4, "mirror321"},    {Getter::prob, 0, "repulsion724"},
                      {Getter::prob, 8, "mirror321"},    {Getter::ptt, 0, "repulsion724"},
                      {Getter::ptt, 8, "mirror321"},     {Getter::det, 8, "mirror321"},
                      {Getter::closest, 8, "mirror321"}, {Getter::boot, 6, "mirror321"}};
  for (const auto& shape : shapes) {
    SCOPED_TRACE(fmt::format("{} of degree {} on {}", getter_name(shape.getter), shape.degree, shape.sphere));
    test::RandomPlan plan = test::shaped_plan(shape.getter, shape.degree, shape.sphere, seeds(shape.getter), pool());
    if (is_emulated()) test::cut_down(plan);
    // With the kernels of fixed shapes, and with those for all (CUDA).
    for (const char* kernels : {"fixed", "any"}) {
      ASSERT_EQ(setenv("CINGULUM_TEST_TRACK_KERNELS", kernels, 1), 0);
      const auto gpu = tracker();
      const std::uint64_t points = test::expect_same_as_cpu(*gpu, plan, pool());
      EXPECT_GT(points, 5 * plan.seeds.size()) << kernels;
      if (!is(Backend::cuda)) break;
    }
    unsetenv("CINGULUM_TEST_TRACK_KERNELS");
  }
}

// Every kernel once, briefly: what compute-sanitizer runs (tools/gpu-sanitize).
TEST_P(DeviceTracking, a_few_steps_of_every_getter_have_the_bits_of_the_cpu) {
  struct {
    Getter getter;
    int degree;
    const char* sphere;
  } const shapes[] = {
      {Getter::boot, 4, "mirror321"},    {Getter::boot, 2, "repulsion362"}, {Getter::prob, 0, "repulsion724"},
      {Getter::prob, 8, "mirror321"},    {Getter::ptt, 0, "repulsion724"},  {Getter::ptt, 4, "mirror321"},
      {Getter::det, 0, "repulsion362"},  {Getter::det, 4, "mirror321"},     {Getter::closest, 0, "mirror321"},
      {Getter::closest, 4, "mirror321"}, {Getter::closest, 0, nullptr},     {Getter::tensor, 0, nullptr}};
  for (const auto& shape : shapes) {
    SCOPED_TRACE(fmt::format("{} of degree {}", getter_name(shape.getter), shape.degree));
    test::RandomPlan plan = test::shaped_plan(shape.getter, shape.degree, shape.sphere, 5, pool());
    plan.options.max_length_mm = 3;
    plan.options.ptt_tries = 40;
    for (const char* kernels : {"fixed", "any"}) {
      ASSERT_EQ(setenv("CINGULUM_TEST_TRACK_KERNELS", kernels, 1), 0);
      const auto gpu = tracker();
      EXPECT_GT(test::expect_same_as_cpu(*gpu, plan, pool()), plan.seeds.size()) << kernels;
      if (!is(Backend::cuda)) break;
    }
    unsetenv("CINGULUM_TEST_TRACK_KERNELS");
  }
}

// The file that a run of these devices writes.
void write_file(const std::filesystem::path& path, const test::RandomPlan& plan, const std::string& devices,
                std::uint64_t chunk, ThreadPool& pool) {
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const auto seeds = listed_seeds(plan.seeds).value();
  auto trackers = prepare_trackers(testing::registry(), devices, 1, pool, numbers, plan.field, *seeds, nullptr);
  EXPECT_TRUE(trackers) << testing::message_of(trackers);
  if (!trackers) return;
  TractogramLayout layout;
  layout.format = TractogramFormat::trx;
  layout.reference = plan.field.geometry;
  layout.streamline_fields = seed_fields(seeds->count());
  auto writer = TractogramWriter::create(path, layout, {});
  EXPECT_TRUE(writer) << testing::message_of(writer);
  TrackingRunOptions options;
  options.save_seeds = true;
  options.chunk_seeds = chunk;
  options.fixed_chunks = true;
  const auto statistics = run_tracking(trackers->pointers(), *seeds, plan.field.geometry, options, **writer, nullptr);
  EXPECT_TRUE(statistics) << testing::message_of(statistics);
  EXPECT_TRUE((*writer)->commit());
}

std::string file_of(const test::RandomPlan& plan, const std::string& devices, std::uint64_t chunk, ThreadPool& pool) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "a.trx";
  write_file(path, plan, devices, chunk, pool);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_P(EveryDeviceTracking, files_are_the_same_from_any_mix_of_devices_and_chunks) {
  test::RandomPlan plan = test::shaped_plan(Getter::prob, 8, "mirror321", seeds(Getter::prob), pool());
  if (is_emulated()) {
    plan.seeds.resize(12);
    plan.options.max_length_mm = 20;
  }
  const std::string device = GetParam();
  const std::string truth = file_of(plan, "cpu", 25000, pool());
  EXPECT_GT(truth.size(), is_emulated() ? 2000u : 10000u);
  for (const std::string& mix : {device, device + "," + device, device + ",cpu", std::string("cpu,cpu")}) {
    for (const std::uint64_t chunk :
         is_emulated() ? std::vector<std::uint64_t>{5, 25000} : std::vector<std::uint64_t>{97, 1024, 25000}) {
      EXPECT_TRUE(file_of(plan, mix, chunk, pool()) == truth) << mix << " in chunks of " << chunk;
    }
  }
}

// The largest resident memory of this process so far, in bytes; 0 where the system does not tell.
std::uint64_t largest_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return 1024 * std::stoull(line.substr(6));
  }
  return 0;
}

// Twenty times as many seeds take the same memory, on the device and on the host: streamlines stream.
TEST_P(EveryDeviceTracking, memory_does_not_grow_with_the_number_of_seeds) {
  const bool slow = is_emulated();
  const std::uint32_t few = slow ? 400 : 20'000;
  test::RandomPlan plan;
  plan.options.getter = Getter::closest;
  plan.options.max_length_mm = slow ? 4 : 100;
  plan.options.max_directions = 1;
  plan.options.random_key = 3;
  plan.field = test::peak_field(
      test::grid(12, 12, 6), 1,
      [](numerics::Vec3d, numerics::Vec3d* peaks) {
        peaks[0] = {1, 0, 0};
      },
      [](numerics::Vec3d) { return 1.0f; });
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> share(0.0f, 1.0f);
  for (std::uint32_t i = 0; i < 20 * few; ++i) {
    plan.seeds.push_back({11 * share(generator), 11 * share(generator), 5 * share(generator)});
  }
  test::RandomPlan first = plan;
  first.seeds.resize(few);
  MemoryBudget& budget = device().budget();
  const std::size_t chunk = few / 10;
  const TemporaryFolder folder;
  write_file(folder.path() / "few.trx", first, GetParam(), chunk, pool());
  const std::uint64_t device_before = budget.peak_bytes(), host_before = largest_resident_bytes();
  write_file(folder.path() / "many.trx", plan, GetParam(), chunk, pool());
  const std::uint64_t device_after = budget.peak_bytes(), host_after = largest_resident_bytes();
  const auto bytes_of_few = std::filesystem::file_size(folder.path() / "few.trx");
  const auto bytes_of_many = std::filesystem::file_size(folder.path() / "many.trx");
  EXPECT_GT(bytes_of_many, 15 * bytes_of_few);
  // A longer piece than those before makes its room grow a little.
  EXPECT_LE(device_after, device_before + device_before / 10);
  std::printf("%s: peaks of %.1f and %.1f MB on the device, %.1f and %.1f MB on the host, files of %.1f and %.1f MB\n",
              GetParam(), 1e-6 * static_cast<double>(device_before), 1e-6 * static_cast<double>(device_after),
              1e-6 * static_cast<double>(host_before), 1e-6 * static_cast<double>(host_after),
              1e-6 * static_cast<double>(bytes_of_few), 1e-6 * static_cast<double>(bytes_of_many));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // The arrays beside the positions take up to a megabyte each before they go to temporary files, and of a run that has
  // more ranges than the few one more waits to be written.
  EXPECT_LT(host_after, host_before + 32'000'000);
#endif
}

TEST(SharedTracking, every_device_that_is_there_can_share_the_seeds_of_a_run) {
  const auto pool = ThreadPool::create(4).value();
  test::RandomPlan plan = test::shaped_plan(Getter::prob, 8, "mirror321", 40, *pool);
  plan.options.max_length_mm = 20;
  std::string mix = "cpu";
  for (const char* other : {"webgpu", "cuda"}) {
    if (testing::registry().select_one(other)) mix = std::string(other) + "," + mix;
  }
  if (mix == "cpu") GTEST_SKIP() << "there is no device besides the CPU";
  const std::string truth = file_of(plan, "cpu", 25000, *pool);
  EXPECT_GT(truth.size(), 10000u);
  for (const std::uint64_t chunk : {3u, 7u}) EXPECT_TRUE(file_of(plan, mix, chunk, *pool) == truth) << mix;
}

// Regions, chunks and ties: what random plans have besides a tracker's own work, without a GPU.
TEST(SharedTracking, runs_of_random_plans_are_the_same_from_any_number_of_trackers) {
  const auto pool = ThreadPool::create(3).value();
  std::uint64_t points = 0;
  std::uint32_t runs = 0, with_regions = 0, fewer = 0;
  for (std::uint32_t number = 0; runs < 40; ++number) {
    const test::PlanRecipe recipe = test::random_recipe(number);
    // ptt takes long; what is tested here does not depend on the getter.
    if (recipe.chunk == 0 || recipe.options.getter == Getter::ptt) continue;
    SCOPED_TRACE(test::described(recipe));
    const test::RandomPlan plan = test::build_plan(recipe, *pool);
    std::vector<std::unique_ptr<Tracker>> own;
    std::vector<Tracker*> trackers;
    for (std::uint32_t i = 0; i < 2 + number % 2; ++i) {
      own.push_back(make_cpu_tracker(*pool));
      trackers.push_back(own.back().get());
    }
    const test::PlanComparison shared = test::compare_shared_run(trackers, recipe, plan, *pool);
    EXPECT_EQ(shared.difference, "");
    test::PlanRecipe without = recipe;
    without.regions.clear();
    const std::uint64_t all = test::compare_shared_run(trackers, without, plan, *pool).points;
    fewer += shared.points < all ? 1u : 0u;
    with_regions += recipe.regions.empty() ? 0u : 1u;
    points += shared.points;
    ++runs;
  }
  EXPECT_GT(points, 1000u);
  EXPECT_GT(with_regions, 15u);
  EXPECT_GT(fewer, 8u) << "regions have no effect";
}

// The same GPU named twice has the field once.
TEST_P(EveryDeviceTracking, a_device_that_is_named_twice_has_the_field_once) {
  const test::RandomPlan plan = test::shaped_plan(Getter::prob, 0, "repulsion724", 5, pool());
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const auto seeds = listed_seeds(plan.seeds).value();
  const std::string device_name = GetParam();
  const std::uint64_t base = device().budget().used_bytes();
  for (const std::string& names : {device_name, device_name + "," + device_name + "," + device_name}) {
    const auto trackers = prepare_trackers(testing::registry(), names, 1, pool(), numbers, plan.field, *seeds, nullptr);
    ASSERT_TRUE(trackers) << testing::message_of(trackers);
    EXPECT_EQ(trackers->trackers.size(), names == device_name ? 1u : 3u);
    const std::uint64_t used = device().budget().used_bytes() - base;
    const std::uint64_t field = plan.field.stored_bytes().size();
    if (is(Backend::cpu)) {
      EXPECT_EQ(used, 0u);
    } else {
      EXPECT_GE(used, field);
      if (names == device_name) used_once_ = used;
      EXPECT_EQ(used, used_once_);
    }
  }
}

TEST(CpuTracking, the_limit_of_the_cpu_holds_for_its_field) {
  const auto pool = ThreadPool::create(2).value();
  Device& device = *testing::registry().select_one("cpu").value();
  const test::RandomPlan plan = test::shaped_plan(Getter::prob, 0, "repulsion724", 5, *pool);
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const auto seeds = listed_seeds(plan.seeds).value();
  const std::uint64_t need = plan.field.stored_bytes().size() + 4 * plan.field.record_of_voxel.size();
  for (const std::uint64_t percent : {100u, 50u, 20u, 5u, 1u}) {
    device.budget().set_limit(need * percent / 100);
    const auto trackers = prepare_trackers(testing::registry(), "cpu", 1, *pool, numbers, plan.field, *seeds, nullptr);
    device.budget().set_limit(std::nullopt);
    EXPECT_EQ(trackers.has_value(), percent == 100);
    if (trackers) continue;
    EXPECT_EQ(trackers.error().kind(), ErrorKind::out_of_memory);
    for (const char* part : {"field_precision half", "mask for fewer voxels", "free are", "CINGULUM_MEMORY_LIMIT"}) {
      EXPECT_NE(trackers.error().message().find(part), std::string::npos) << trackers.error().message();
    }
  }
}

CGL_FOR_DEVICES(DeviceTracking, "cuda", "webgpu");
CGL_FOR_DEVICES(CardTracking, "cuda");
CGL_FOR_EACH_DEVICE(EveryDeviceTracking);

}  // namespace
}  // namespace cingulum
