// The driver of paged tracking with kernels on the host: the code of the CUDA kernels, instantiated with the portable
// lanes, one group that does all the work. What is left to test on a GPU is the warp itself.
#include "tract/paged/paged_tracker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "device/cpu/cpu_device.hpp"
#include "support/fiber_lanes.hpp"
#include "support/long_tests.hpp"
#include "support/memory_jobs.hpp"
#include "support/plan_shrinker.hpp"
#include "support/random_plan.hpp"
#include "support/shaped_plan.hpp"
#include "tract/field/float16_field.hpp"
#include "tract/kernel/brick_half.hpp"
#include "tract/paged/track_kernel_choice.hpp"

namespace cingulum {
namespace {

struct HostMachine {
  static std::uint32_t take(std::uint32_t* counter) { return (*counter)++; }
};

// Sanitizers that follow stacks lose track of fibers.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool fibers_run = false;
#else
constexpr bool fibers_run = true;
#endif

struct FiberMachine {
  static std::uint32_t take(std::uint32_t* counter) {
    const std::uint32_t taken = test::FiberLanes::lane_index() == 0u ? (*counter)++ : 0u;
    return test::FiberLanes::get(taken, 0u);
  }
};

// The portable lanes in the role of a warp: they take the ways that lanes which run together take.
struct WarpLikeLanes : numerics::PortableLanesOf<32> {
  static constexpr bool serial = false;
  using Narrow = WarpLikeLanes;
  using Wide = WarpLikeLanes;
};

constexpr std::uint64_t shared_bytes_of_an_h200 = 232448;

// The kernels that CUDA would choose there, instantiated with the lanes above.
class HostKernels final : public PagedKernels {
 public:
  explicit HostKernels(std::atomic<std::uint32_t>& launches) : launches_(launches) {}

  [[nodiscard]] Status configure(const TrackingInput& input, bool in_bricks) override {
    input_ = input;
    choice_ = choose_track_kernels(input, {.shared_bytes = shared_bytes_of_an_h200, .in_bricks = in_bricks});
    EXPECT_NE(choice_.halves, TrackKernelId::none);
    return {};
  }
  [[nodiscard]] std::unique_ptr<PagedKernels> for_another_plan() const override {
    return std::make_unique<HostKernels>(launches_);
  }
  [[nodiscard]] Status find_directions(Queue&, std::uint32_t, const kernel::PagedWork& work) override {
    Memory memory(kernel::slab_layout(input_, true), choice_.seeds_launch.slab_words);
    kernel::run_seeds<WarpLikeLanes, HostMachine>(input_, memory.slab, work.seeds);
    memory.expect_nothing_behind();
    return {};
  }
  [[nodiscard]] Status track(Queue&, std::uint32_t, const kernel::PagedWork& work) override {
    ++launches_;
    ++runs_of(choice_.halves);
    using enum TrackKernelId;
    switch (choice_.halves) {
      case bricks: {
        Memory memory(kernel::slab_layout(input_, false), choice_.halves_launch.slab_words);
        kernel::run_halves_in_brick<WarpLikeLanes, HostMachine>(input_, memory.slab, work.seeds, work.halves,
                                                                work.store, work.brick);
        memory.expect_nothing_behind();
        return {};
      }
      case boot_degree4: track_with<boot_degree4, BootstrapDegree4>(work); return {};
      case amplitudes_prob_362: track_with<amplitudes_prob_362, Amplitudes362>(work); return {};
      case amplitudes_det_362: track_with<amplitudes_det_362, Amplitudes362>(work); return {};
      case series_prob_degree8: track_with<series_prob_degree8, SeriesDegree8<false>>(work); return {};
      case series_det_degree8: track_with<series_det_degree8, SeriesDegree8<false>>(work); return {};
      case series_closest_degree8: track_with<series_closest_degree8, SeriesDegree8<true>>(work); return {};
      case amplitudes_ptt_probes:
        // With the corners of cells side by side, and without.
        if (fibers_run && runs_of(amplitudes_ptt_probes) % 2 == 0) {
          follow_probes<test::FiberLanesOf<true>>(work);
        } else if (fibers_run) {
          follow_probes<test::FiberLanesOf<false>>(work);
        } else {
          track_with<amplitudes_ptt, AsTheyCome>(work, kernel::slab_layout(input_, false).words);
        }
        return {};
      // All sizes as they come.
      default: track_with<amplitudes_prob, AsTheyCome>(work); return {};
    }
  }
  [[nodiscard]] Status compact(Queue&, const kernel::PagedWork& work) override {
    if (work.output.count == 0) {
      ADD_FAILURE() << "a part without streamlines: a launch of no blocks, which CUDA refuses";
      return {};
    }
    points_before_last() = std::max(points_before_last().load(), work.output.offset[work.output.count - 1]);
    // Lanes in an order of their own: they must not depend on each other.
    for (std::uint32_t which = 0; which < work.output.count; ++which) {
      for (std::uint32_t lane = 32; lane-- > 0;) {
        kernel::compact_line(input_, work.seeds, work.halves, work.store, work.output, which, lane, 32);
      }
    }
    return {};
  }

  // Launches of each kernel that tracks halves, by all of these.
  static std::atomic<std::uint32_t>& runs_of(TrackKernelId id) {
    static std::array<std::atomic<std::uint32_t>, track_kernel_count> runs = {};
    return runs[static_cast<std::size_t>(id)];
  }
  // The most points that came in one part before its last streamline.
  static std::atomic<std::uint32_t>& points_before_last() {
    static std::atomic<std::uint32_t> points = 0;
    return points;
  }

 private:
  // A slab as large as the choice of the kernel says, with numbers behind it that nobody may change.
  struct Memory {
    static constexpr std::size_t guarded = 4096;
    static constexpr float untouched = -12345.0f;

    Memory(const kernel::SlabLayout& layout, std::uint32_t words_)
        : words(words_), floats(words_ + guarded, untouched), slab(kernel::slab_at(floats.data(), layout)) {}
    void expect_nothing_behind() const {
      EXPECT_TRUE(std::all_of(floats.begin() + words, floats.end(), [](float value) { return value == untouched; }))
          << "a kernel wrote behind the " << words << " words of its slab";
    }

    std::uint32_t words;
    std::vector<float> floats;
    Slab slab;
  };

  struct AsTheyCome {
    static void fix_shape(TrackingInput&) {}
  };

  template <TrackKernelId id, class Shape>
  void track_with(const kernel::PagedWork& work) {
    track_with<id, Shape>(work, choice_.halves_launch.slab_words);
  }
  template <TrackKernelId id, class Shape>
  void track_with(const kernel::PagedWork& work, std::uint32_t slab_words) {
    TrackingInput input = input_;
    Shape::fix_shape(input);
    Memory memory(kernel::slab_layout(input, false), slab_words);
    kernel::run_halves<WarpLikeLanes, HostMachine, typename StepsOfKernel<id>::Steps>(input, memory.slab, work.seeds,
                                                                                      work.halves, work.store);
    memory.expect_nothing_behind();
  }

  // ptt's threads are fibers. What a CUDA kernel derives from the input is made here.
  template <class Lanes>
  void follow_probes(const kernel::PagedWork& work) {
    TrackingInput input = input_;
    std::vector<kernel::FourWords> cells(2 * kernel::probe_cell_count(input.plan.size));
    auto* const cell_words = cells.data()->word;
    for (std::size_t i = 0; i < cells.size() / 2; ++i) kernel::write_probe_cell(input, i, cell_words);
    std::vector<std::uint32_t> nearest(kernel::packed_nearest_words);
    for (std::uint32_t i = 0; i < nearest.size(); ++i) nearest[i] = kernel::packed_nearest(input.nearest, i);
    std::vector<kernel::FourFloats> directions(std::size_t{32} * input.sphere.rows);
    std::vector<std::uint32_t> ranks(directions.size());
    for (std::uint32_t i = 0; i < input.field.channels; ++i) ranks[i] = kernel::rank_of_slot(input, i);
    for (std::size_t i = 0; i < directions.size(); ++i) {
      directions[i] = {{input.sphere.x[i], input.sphere.y[i], input.sphere.z[i], numerics::bits_float(ranks[i])}};
    }
    std::vector<kernel::ProbeArc> arcs(32);
    const std::size_t slab_words = kernel::probe_slab_words(kernel::walks_of_a_warp);
    constexpr kernel::FourFloats untouched = {
        {Memory::untouched, Memory::untouched, Memory::untouched, Memory::untouched}};
    std::vector<kernel::FourFloats> slab((slab_words + Memory::guarded) / 4, untouched);
    test::FiberWarp::run([&] { arcs[Lanes::lane_index()] = kernel::disc_arc<Lanes>(input); });
    input.probes.cells = cell_words;
    // A number of its own for every cell.
    std::vector<std::uint32_t> corners_of_cell(cells.size() / 2);
    const std::size_t stride = 2 * (std::size_t{input.field.channels} + 1);
    std::vector<kernel::FourFloats> corners(corners_of_cell.size() * stride);
    std::vector<float> greatest(corners_of_cell.size() * kernel::most_groups);
    ranks.push_back(0);
    ranks[input.field.channels] = input.field.channels;
    for (std::uint32_t i = 0; i < corners_of_cell.size(); ++i) {
      corners_of_cell[i] = i;
      kernel::FourFloats* const own = &corners[i * stride];
      for (std::uint32_t slot = 0; slot <= input.field.channels; ++slot) {
        kernel::write_corners(input, i, slot, own + std::size_t{2} * ranks[slot]);
      }
      for (std::uint32_t group = 0; group < kernel::most_groups; ++group) {
        greatest[std::size_t{i} * kernel::most_groups + group] = kernel::greatest_of_group(input, own, group);
      }
    }
    input.probes = {cell_words,
                    corners_of_cell.data(),
                    ranks.data(),
                    corners.data()->number,
                    greatest.data(),
                    nearest.data(),
                    directions.data()->number,
                    &arcs.data()->turn.along};
    test::FiberWarp::run([&] {
      kernel::run_probe_halves<Lanes, FiberMachine, kernel::walks_of_a_warp>(input, slab.data()->number, 0u, work.seeds,
                                                                             work.halves, work.store);
    });
    const float* const words = slab.data()->number;
    EXPECT_TRUE(std::all_of(words + slab_words, words + 4 * slab.size(),
                            [](float value) { return value == Memory::untouched; }))
        << "probes wrote behind the " << slab_words << " words of their slab";
  }

  TrackingInput input_{};
  TrackKernelChoice choice_;
  std::atomic<std::uint32_t>& launches_;
};

struct Setting {
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(2).value();
  std::unique_ptr<CpuDevice> device = CpuDevice::create(1).value();
  std::atomic<std::uint32_t> launches = 0;

  std::unique_ptr<Tracker> tracker(const PagedTrackerOptions& options) {
    return make_paged_tracker(*device, std::make_unique<HostKernels>(launches), options);
  }
};

std::uint32_t plan_count() {
  return test::may_take_long() ? 2000 : 60;
}

TEST(PagedTracker, gives_the_bits_of_the_cpu_on_random_plans) {
  Setting setting;
  std::uint64_t points = 0;
  for (std::uint32_t number = 0; number < plan_count(); ++number) {
    SCOPED_TRACE(fmt::format("plan {}", number));
    points += test::expect_same_as_cpu([&] { return setting.tracker({}); }, test::random_recipe(number), *setting.pool);
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(points, 100u * plan_count());
}

// Plans of several getters share a field, at the same time and after the first of them is gone.
// In bricks: SessionInBricks, on the devices themselves.
TEST(PagedTracker, plans_beside_each_other_have_the_bits_that_they_have_alone) {
  Setting setting;
  test::RandomPlan plan = test::tall_plan(Getter::prob, true, 3);
  const std::uint64_t field_bytes = plan.field.stored_bytes().size();
  std::vector<TrackingPlan> numbers;
  std::vector<StreamlineBatch> truths;
  const auto seeds = listed_seeds(plan.seeds).value();
  for (const Getter getter : {Getter::prob, Getter::det, Getter::prob, Getter::closest}) {
    plan.options.getter = getter;
    plan.options.max_length_mm = 100 + 100 * static_cast<double>(numbers.size());
    plan.options.max_directions = static_cast<std::uint32_t>(1 + numbers.size());
    numbers.push_back(make_tracking_plan(plan.options, plan.field.geometry).value());
    const auto cpu = make_cpu_tracker(*setting.pool);
    ASSERT_TRUE(cpu->prepare(numbers.back(), plan.field, *seeds, nullptr));
    ASSERT_TRUE(cpu->track({0, seeds->count()}, truths.emplace_back()));
  }
  auto first = setting.tracker({.hints = {.callers = 3}, .part_points = 1000});
  EXPECT_FALSE(first->beside(numbers[0], *seeds, nullptr)) << "before prepare";
  ASSERT_TRUE(first->prepare(numbers[0], plan.field, *seeds, nullptr));
  EXPECT_EQ(first->hints().callers, 3u);
  const std::uint64_t of_first = setting.device->budget().used_bytes();
  std::vector<std::unique_ptr<Tracker>> trackers;
  for (const TrackingPlan& each : numbers) {
    auto beside = first->beside(each, *seeds, nullptr);
    ASSERT_TRUE(beside) << beside.error().message();
    trackers.push_back(std::move(*beside));
  }
  // Tables and seeds of their own alone: half a field each would be more.
  EXPECT_LT(setting.device->budget().used_bytes(), of_first + trackers.size() * field_bytes / 2);
  first.reset();
  std::vector<StreamlineBatch> batches(trackers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < trackers.size(); ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(trackers[i]->track({0, seeds->count()}, batches[i])); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < trackers.size(); ++i) EXPECT_TRUE(test::same_batch(batches[i], truths[i])) << i;
  trackers.clear();
  EXPECT_EQ(setting.device->budget().used_bytes(), 0u);
}

// Each of them on the shape that it is for, which random plans have now and then.
TEST(PagedTracker, gives_the_bits_of_the_cpu_by_every_kernel_of_a_fixed_shape) {
  Setting setting;
  struct {
    TrackKernelId kernel;
    Getter getter;
    int degree;
    const char* sphere;
  } const shapes[] = {{TrackKernelId::boot_degree4, Getter::boot, 4, "mirror321"},
                      {TrackKernelId::amplitudes_prob_362, Getter::prob, 0, "repulsion724"},
                      {TrackKernelId::amplitudes_det_362, Getter::det, 0, "repulsion724"},
                      {TrackKernelId::amplitudes_ptt_probes, Getter::ptt, 0, "repulsion724"},
                      {TrackKernelId::series_prob_degree8, Getter::prob, 8, "mirror321"},
                      {TrackKernelId::series_det_degree8, Getter::det, 8, "mirror321"},
                      {TrackKernelId::series_closest_degree8, Getter::closest, 8, "mirror321"}};
  for (const auto& shape : shapes) {
    SCOPED_TRACE(track_kernel_name(shape.kernel));
    // Probes have two forms, by turns.
    for (int form = 0; form < 4; ++form) {
      test::RandomPlan plan = test::shaped_plan(shape.getter, shape.degree, shape.sphere, 12, *setting.pool);
      plan.options.max_length_mm = 25;
      plan.options.ptt_tries = 100;
      // Probes take turns with their disc in two orders, and ask for the greatest amplitude or not.
      if (form >= 2) {
        plan.options.ptt_bound_interval = 4;
        if (shape.getter == Getter::ptt) {
          plan.options.relative_threshold = 0;
          plan.options.absolute_threshold = 0.05;
        }
      }
      const std::uint32_t before = HostKernels::runs_of(shape.kernel);
      const auto tracker = setting.tracker({});
      EXPECT_GT(test::expect_same_as_cpu(*tracker, plan, *setting.pool), 5 * plan.seeds.size());
      EXPECT_GT(HostKernels::runs_of(shape.kernel), before) << "another kernel ran";
    }
  }
}

// Few streamlines at a time: some of a warp's end before the others, or there are fewer than it may have.
TEST(PagedTracker, follows_probes_of_few_streamlines) {
  if (!fibers_run) GTEST_SKIP() << "no fibers here";
  Setting setting;
  const std::uint32_t wanted = test::may_take_long() ? 60 : 3;
  std::uint32_t found = 0;
  for (std::uint32_t number = 3000; number < 6000 && found < wanted; ++number) {
    const test::RandomPlan plan = test::random_plan(number, *setting.pool);
    if (plan.options.getter != Getter::ptt || plan.field.kind != FieldKind::amplitudes) continue;
    SCOPED_TRACE(fmt::format("plan {}", number));
    const std::uint32_t before = HostKernels::runs_of(TrackKernelId::amplitudes_ptt_probes);
    const auto tracker = setting.tracker({.most_piece_seeds = 1 + number % 4});
    test::expect_same_as_cpu(*tracker, plan, *setting.pool);
    if (HostKernels::runs_of(TrackKernelId::amplitudes_ptt_probes) > before) ++found;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(found, wanted);
}

TEST(PagedTracker, goes_on_when_pages_run_out_and_brings_back_small_parts) {
  Setting setting;
  HostKernels::points_before_last() = 0;
  int long_ones = 0;
  for (std::uint32_t number = 100; number < 120 || (long_ones <= 3 && number < 200); ++number) {
    SCOPED_TRACE(fmt::format("plan {}", number));
    const test::RandomPlan plan = test::random_plan(number, *setting.pool);
    const auto tracker = setting.tracker({.most_piece_seeds = 1 + number % 7, .first_pages = 1, .part_points = 5});
    const std::uint32_t before = setting.launches;
    const std::uint64_t points = test::expect_same_as_cpu(*tracker, plan, *setting.pool);
    if (points > 500) {
      ++long_ones;
      EXPECT_GT(setting.launches, before + 2);
    }
  }
  EXPECT_GT(long_ones, 3);
  EXPECT_GT(HostKernels::points_before_last(), 0u) << "no part had two streamlines";
  EXPECT_LT(HostKernels::points_before_last(), 5u) << "two streamlines of a part have more points than it may have";
}

// Short memory gives the same bits, whole, in small pieces or in bricks, or a refusal before work begins; then a
// smaller job goes on.
TEST(PagedTracker, with_any_share_of_the_memory_tracks_the_same_or_refuses_before_work_begins) {
  Setting setting;
  MemoryBudget& budget = setting.device->budget();
  int refused = 0, tracked = 0, in_bricks = 0;
  const std::uint32_t plans = test::may_take_long() ? 400 : 12;
  constexpr std::pair<Getter, bool> tall[] = {{Getter::prob, false}, {Getter::prob, true},    {Getter::ptt, false},
                                              {Getter::ptt, true},   {Getter::det, true},     {Getter::closest, false},
                                              {Getter::prob, false}, {Getter::tensor, false}, {Getter::det, false}};
  for (std::uint32_t number = 0; number < plans + std::size(tall); ++number) {
    const test::Job job(number < std::size(tall) ? test::tall_plan(tall[number].first, tall[number].second, number)
                                                 : test::random_plan(200 + number, *setting.pool),
                        *setting.pool);
    SCOPED_TRACE(fmt::format("plan {}: {}", number, job.plan.name));
    const auto tracker = setting.tracker({.first_pages = number % 3});
    ASSERT_TRUE(job.prepare(*tracker));
    const std::uint64_t need = budget.used_bytes();
    bool was_refused = false;
    for (const std::uint64_t percent : {100u, 50u, 20u, 5u, 1u}) {
      const std::uint32_t in_bricks_before = HostKernels::runs_of(TrackKernelId::bricks);
      budget.set_limit(need * percent / 100);
      const Status prepared = job.prepare(*tracker);
      if (prepared) {
        ++tracked;
        EXPECT_TRUE(job.tracks_the_same(*tracker)) << percent << " % of " << need;
        EXPECT_LE(budget.used_bytes(), need * percent / 100);
        in_bricks += HostKernels::runs_of(TrackKernelId::bricks) > in_bricks_before ? 1 : 0;
      } else {
        ++refused;
        was_refused = true;
        EXPECT_LT(percent, 100u);
        EXPECT_EQ(prepared.error().kind(), ErrorKind::out_of_memory);
        const std::string& message = prepared.error().message();
        for (const char* part : {"needs", "free are", "mask for fewer voxels", "CINGULUM_MEMORY_LIMIT"}) {
          EXPECT_NE(message.find(part), std::string::npos) << message;
        }
        EXPECT_EQ(budget.used_bytes(), 0u) << "nothing is kept";
      }
      budget.set_limit(std::nullopt);
    }
    if (was_refused && number % 4 == 0) {
      const test::Job small(test::random_plan(0, *setting.pool), *setting.pool);
      ASSERT_TRUE(small.prepare(*tracker)) << "the same tracker, a smaller job";
      EXPECT_TRUE(small.tracks_the_same(*tracker));
    }
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_GT(refused, 20);
  EXPECT_GT(tracked, 30);
  EXPECT_GT(in_bricks, 10);
}

// Whichever allocation fails, the result is the same, or prepare() says that it cannot be.
TEST(PagedTracker, with_any_allocation_failing_tracks_the_same_or_refuses_before_work_begins) {
  Setting setting;
  MemoryBudget& budget = setting.device->budget();
  for (const std::uint32_t number : {7u, 12u, 31u}) {
    const test::Job job(test::random_plan(number, *setting.pool), *setting.pool);
    bool all_passed = false;
    for (std::uint64_t failing = 1; !all_passed; ++failing) {
      ASSERT_LT(failing, 500u);
      const auto tracker = setting.tracker({.first_pages = 4});
      const std::uint64_t before = budget.allocations();
      budget.fail_nth_allocation(failing);
      const Status prepared = job.prepare(*tracker);
      if (!prepared) {
        EXPECT_EQ(prepared.error().kind(), ErrorKind::out_of_memory);
        budget.fail_nth_allocation(0);
        ASSERT_TRUE(job.prepare(*tracker)) << "after a refusal the tracker works";
      }
      EXPECT_TRUE(job.tracks_the_same(*tracker)) << job.plan.name << ", allocation " << failing;
      budget.fail_nth_allocation(0);
      all_passed = budget.allocations() - before < failing;
    }
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(PagedTracker, may_be_called_by_several_threads) {
  Setting setting;
  const test::RandomPlan plan = test::random_plan(11, *setting.pool);
  const TrackingPlan numbers = make_tracking_plan(plan.options, plan.field.geometry).value();
  const auto seeds = listed_seeds(plan.seeds).value();
  const auto tracker = setting.tracker({.hints = {.callers = 3}, .first_pages = 2});
  ASSERT_TRUE(tracker->prepare(numbers, plan.field, *seeds, nullptr));
  const auto cpu = make_cpu_tracker(*setting.pool);
  ASSERT_TRUE(cpu->prepare(numbers, plan.field, *seeds, nullptr));
  StreamlineBatch truth;
  ASSERT_TRUE(cpu->track({0, plan.seeds.size()}, truth));
  StreamlineBatch batches[3];
  {
    std::vector<std::jthread> threads;
    for (StreamlineBatch& batch : batches) {
      threads.emplace_back([&] {
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(tracker->track({0, plan.seeds.size()}, batch));
      });
    }
  }
  for (const StreamlineBatch& batch : batches) EXPECT_TRUE(test::same_batch(batch, truth));
}

TEST(PagedTracker, refuses_what_does_not_fit_before_work_begins) {
  Setting setting;
  const test::RandomPlan plan = test::random_plan(1, *setting.pool);
  TrackingOptions other = plan.options;
  other.getter = plan.options.getter == Getter::tensor ? Getter::boot : Getter::tensor;
  const TrackingPlan numbers = make_tracking_plan(other, plan.field.geometry).value();
  const auto tracker = setting.tracker({});
  EXPECT_FALSE(tracker->supports(numbers, plan.field));
  StreamlineBatch batch;
  EXPECT_EQ(tracker->track({0, 1}, batch).error().kind(), ErrorKind::invalid_state);
}

}  // namespace
}  // namespace cingulum
