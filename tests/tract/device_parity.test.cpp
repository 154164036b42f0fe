// Tracking on every GPU that is there equals tracking on the CPU, bit for bit: random plans (contract, section 7;
// CINGULUM_TEST_PLANS sets how many), fields of the default shapes, pages that run out, several devices that share the
// seeds of one run, and whole files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "formats/tractogram.hpp"
#include "support/card_ballast.hpp"
#include "support/each_device.hpp"
#include "support/memory_jobs.hpp"
#include "support/random_plan.hpp"
#include "support/temporary_folder.hpp"
#include "tract/run/device_choice.hpp"
#include "tract/run/tracking_run.hpp"

namespace cingulum {
namespace {

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

class DeviceTracking : public testing::EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pool_ = ThreadPool::create(4).value();
    auto made = make_tracker(device(), *pool_);
    if (!made && !testing::is_required(GetParam())) GTEST_SKIP() << made.error().message();
    ASSERT_TRUE(made) << made.error().message();
  }
  [[nodiscard]] std::unique_ptr<Tracker> tracker() { return make_tracker(device(), *pool_).value(); }
  [[nodiscard]] ThreadPool& pool() { return *pool_; }
  // More than a GPU has warps; fewer where the CPU does the work.
  [[nodiscard]] std::uint32_t seeds(Getter getter) const {
    const bool fast = !is(Backend::cpu) && !device().capabilities().software;
    return number_from("CINGULUM_TEST_SEEDS", (getter == Getter::ptt ? 300u : 3000u) / (fast ? 1u : 15u));
  }
  // By a CPU: slow, so that plans are cut down. CINGULUM_TEST_LONG=1 runs them whole there, too.
  [[nodiscard]] bool is_emulated() const {
    return is(Backend::webgpu) && device().capabilities().software && std::getenv("CINGULUM_TEST_LONG") == nullptr;
  }

  std::uint64_t used_once_ = 0;

 private:
  std::unique_ptr<ThreadPool> pool_;
};

TEST_P(DeviceTracking, random_plans_have_the_bits_of_the_cpu) {
  // The CPU against itself shows that the comparison works; that takes few.
  const std::uint32_t plans = is(Backend::cpu) ? 10 : number_from("CINGULUM_TEST_PLANS", 100);
  const std::uint32_t first = number_from("CINGULUM_TEST_FIRST_PLAN", 0);
  std::uint64_t points = 0;
  int failed = 0;
  for (std::uint32_t number = first; number < first + plans && failed < 5; ++number) {
    SCOPED_TRACE(fmt::format("plan {}", number));
    test::RandomPlan plan = test::random_plan(number, pool());
    if (is_emulated()) test::cut_down(plan);
    const auto gpu = tracker();
    const auto before = ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    points += test::expect_same_as_cpu(*gpu, plan, pool());
    const auto after = ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
    failed += after > before ? 1 : 0;
  }
  std::printf("%s: %u plans, %llu points equal\n", GetParam(), plans, static_cast<unsigned long long>(points));
  EXPECT_GT(points, (is_emulated() ? 10u : 100u) * plans);
}

// A field on which kernels of fixed shapes run, given as one piece; peaks where there is no sphere.
test::RandomPlan large_plan(Getter getter, int degree, const char* sphere, std::uint32_t seeds, ThreadPool& pool) {
  test::RandomPlan plan;
  const ImageGeometry geometry = test::grid(24, 22, 18, {1.2, 1.2, 1.5});
  const auto axis = [](numerics::Vec3d p) {
    return test::unit({1, 0.5 * std::sin(0.3 * p.y), 0.4 * std::cos(0.25 * p.x)});
  };
  const auto other = [](numerics::Vec3d p) { return test::unit({0.3 * std::sin(0.2 * p.z), 1, 0.4}); };
  std::mt19937 generator(static_cast<unsigned>(degree) + 77);
  const auto noise = [&](double size) { return std::normal_distribution<double>(0, size)(generator); };
  const auto stop = [](numerics::Vec3d p) {
    return static_cast<float>(1.3 - std::hypot(p.x - 12, p.y - 11, p.z - 9) / 10);
  };
  plan.options.getter = getter;
  plan.options.random_key = 20261115;
  if (getter == Getter::boot) {
    std::vector<numerics::Vec3d> directions;
    std::vector<std::uint8_t> is_b0;
    for (int i = 0; i < 70; ++i) {
      is_b0.push_back(i < 6 ? 1 : 0);
      directions.push_back(test::unit({noise(1), noise(1), 0.01 + noise(1)}));
    }
    const test::AllVoxels signals(
        geometry, directions.size(),
        [&](numerics::Vec3d p, float* s) {
          for (std::size_t i = 0; i < directions.size(); ++i) {
            const double a = numerics::dot(axis(p), directions[i]), b = numerics::dot(other(p), directions[i]);
            const double signal =
                is_b0[i] != 0 ? 1 : 0.6 * std::exp(-0.6 - 2.8 * a * a) + 0.4 * std::exp(-0.6 - 2.8 * b * b);
            s[i] = static_cast<float>(100 * signal + noise(3));
          }
        },
        stop);
    plan.field = make_bootstrap_field(geometry, signals.stop, signals.records(), directions, is_b0, {.degree = degree},
                                      named_sphere(sphere).value(), pool)
                     .value();
  } else if (getter == Getter::tensor) {
    plan.field = test::tensor_field(geometry, axis, stop);
  } else if (sphere == nullptr) {
    plan.field = test::peak_field(
        geometry, 2,
        [&](numerics::Vec3d p, numerics::Vec3d* peaks) {
          peaks[0] = axis(p);
          peaks[1] = other(p) * 0.6;
        },
        stop);
  } else if (degree > 0) {
    plan.field = test::harmonic_field(
        geometry, named_sphere(sphere).value(), degree,
        [&](numerics::Vec3d p, double* c) {
          for (int j = 0; j < numerics::coefficient_count(degree, false); ++j) c[j] = noise(0.02);
          test::add_lobe(degree, axis(p), 1, c);
          test::add_lobe(degree, other(p), 0.6, c);
        },
        stop);
  } else {
    plan.field = test::amplitude_field(
        geometry, named_sphere(sphere).value(),
        [&](numerics::Vec3d p, numerics::Vec3d v) {
          return std::pow(numerics::dot(v, axis(p)), 10) + 0.6 * std::pow(numerics::dot(v, other(p)), 10) + noise(0.02);
        },
        stop);
  }
  std::uniform_real_distribution<float> share(0.0f, 1.0f);
  for (std::uint32_t i = 0; i < seeds; ++i) {
    plan.seeds.push_back({23 * share(generator), 21 * share(generator), 17 * share(generator)});
  }
  plan.pieces = {seeds};
  return plan;
}

// R13: for shares of the memory that a run takes, and for every allocation that fails, the bits are the CPU's or the
// plan is refused before work begins; and the device goes on.
TEST_P(DeviceTracking, short_memory_gives_the_same_bits_or_a_refusal_before_work_begins) {
  if (is(Backend::cpu)) return;  // takes no memory of a device; see the_limit_of_the_cpu_holds_for_its_field
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

// R13 in earnest: all of a card's memory but 64 MiB is taken.
TEST_P(DeviceTracking, where_the_card_is_full_tracks_the_same_or_refuses_before_work_begins) {
  if (!is(Backend::cuda)) return;
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
    test::RandomPlan plan = large_plan(shape.getter, shape.degree, shape.sphere, seeds(shape.getter), pool());
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
    test::RandomPlan plan = large_plan(shape.getter, shape.degree, shape.sphere, 5, pool());
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

TEST_P(DeviceTracking, files_are_the_same_from_any_mix_of_devices_and_chunks) {
  test::RandomPlan plan = large_plan(Getter::prob, 8, "mirror321", seeds(Getter::prob), pool());
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
TEST_P(DeviceTracking, memory_does_not_grow_with_the_number_of_seeds) {
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
  // The arrays beside the positions take up to a megabyte each before they go to temporary files.
  EXPECT_LT(host_after, host_before + 24'000'000);
#endif
}

TEST_P(DeviceTracking, every_device_that_is_there_can_share_the_seeds_of_a_run) {
  if (!is(Backend::cpu)) return;  // once
  test::RandomPlan plan = large_plan(Getter::prob, 8, "mirror321", 40, pool());
  plan.options.max_length_mm = 20;
  std::string mix = "cpu";
  for (const char* other : {"webgpu", "cuda"}) {
    if (testing::registry().select_one(other)) mix = std::string(other) + "," + mix;
  }
  const std::string truth = file_of(plan, "cpu", 25000, pool());
  for (const std::uint64_t chunk : {3u, 7u}) EXPECT_TRUE(file_of(plan, mix, chunk, pool()) == truth) << mix;
}

// The same GPU named twice has the field once.
TEST_P(DeviceTracking, a_device_that_is_named_twice_has_the_field_once) {
  const test::RandomPlan plan = large_plan(Getter::prob, 0, "repulsion724", 5, pool());
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

TEST_P(DeviceTracking, the_limit_of_the_cpu_holds_for_its_field) {
  if (!is(Backend::cpu)) return;
  const test::RandomPlan plan = large_plan(Getter::prob, 0, "repulsion724", 5, pool());
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const auto seeds = listed_seeds(plan.seeds).value();
  const std::uint64_t need = plan.field.stored_bytes().size() + 4 * plan.field.record_of_voxel.size();
  for (const std::uint64_t percent : {100u, 50u, 20u, 5u, 1u}) {
    device().budget().set_limit(need * percent / 100);
    const auto trackers = prepare_trackers(testing::registry(), "cpu", 1, pool(), numbers, plan.field, *seeds, nullptr);
    device().budget().set_limit(std::nullopt);
    EXPECT_EQ(trackers.has_value(), percent == 100);
    if (trackers) continue;
    EXPECT_EQ(trackers.error().kind(), ErrorKind::out_of_memory);
    for (const char* part : {"field_precision half", "mask for fewer voxels", "free are", "CINGULUM_MEMORY_LIMIT"}) {
      EXPECT_NE(trackers.error().message().find(part), std::string::npos) << trackers.error().message();
    }
  }
}

CGL_FOR_EACH_DEVICE(DeviceTracking);

}  // namespace
}  // namespace cingulum
