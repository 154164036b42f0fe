// The tracker of the CPU: the reference that devices must equal. Seeds are worked on along a space-filling curve, in
// small groups that go to whichever thread is free; what each thread found is put in the order of the seeds at the end.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bulk_memory.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/cpu/track_kernels.hpp"
#include "tract/run/kept_by_getter.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seed_order.hpp"

namespace cingulum {
namespace {

// Few enough that the last groups end together, enough that taking one costs nothing.
constexpr std::size_t seeds_per_group = 16;

// Points of streamlines that have ended, until all of the range have: x y z. Blocks serve one range after the other.
// Allocated and freed with each, by whichever thread, they would make malloc's arenas grow with the number of ranges.
using PointBlock = BulkVector<float>;
constexpr std::size_t numbers_of_block = std::size_t{1} << 16;  // more where one streamline needs more

struct FoundLine {
  std::uint64_t seed_index;
  const float* points;  // in a block
  std::uint32_t direction_index;
  std::uint32_t seed_point;
  std::uint32_t point_count;
  std::uint8_t reasons[2];
};

// What one thread after the other found in a range.
struct Findings {
  std::vector<FoundLine> lines;
  std::vector<PointBlock> blocks;  // the last has room left
};

// What the plans of one getter share.
struct GetterTables {
  explicit GetterTables(KernelTables made) : tables(std::move(made)) {}

  KernelTables tables;
  TrackingInput input{};  // of the plan that was first
  AlignedTables aligned;
};

// What the plans of one field share.
struct FieldOfPlans {
  const Field* field = nullptr;
  KeptByGetter<GetterTables> tables;
};

// A streamline of a group while its halves are tracked.
struct OpenLine {
  std::uint64_t seed_index;
  std::uint32_t direction_index;
  float seed[3];
  float direction[3];
  HalfEnd end[2] = {};              // by half
  std::size_t first_point[2] = {};  // in the group's points of halves
};

struct Workspace {
  Workspace(const TrackingInput& input, std::uint32_t halves)
      : slab(input),
        directions(3 * most_initial_directions),
        points(std::make_unique_for_overwrite<float[]>(3 * std::size_t{input.plan.max_steps} * halves)) {}

  SlabMemory slab;
  std::vector<float> directions;
  std::unique_ptr<float[]> points;  // of the halves that are under way
  std::vector<OpenLine> lines;      // of the group
  std::vector<float> ended;         // points of its halves that have ended, one after another
};

// Null where there is none.
template <class T>
std::unique_ptr<T> take_last(std::vector<std::unique_ptr<T>>& list) {
  if (list.empty()) return nullptr;
  std::unique_ptr<T> last = std::move(list.back());
  list.pop_back();
  return last;
}

struct Counts {
  std::uint64_t steps = 0;
  std::uint64_t seeds_outside = 0;
  std::uint64_t seeds_without_direction = 0;
};

class CpuTracker final : public Tracker {
 public:
  explicit CpuTracker(ThreadPool& pool) : pool_(pool) {}

  [[nodiscard]] Status supports(const TrackingPlan& plan, const Field& field) const override {
    return check_plan_and_field(plan, field);
  }

  [[nodiscard]] Status prepare(const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                               const GivenDirections* directions) override {
    return catch_out_of_memory([&]() -> Status {
      auto shared = std::make_shared<FieldOfPlans>();
      shared->field = &field;
      return prepare_on(std::move(shared), plan, seeds, directions);
    });
  }

  [[nodiscard]] Result<std::unique_ptr<Tracker>> beside(const TrackingPlan& plan, const Seeds& seeds,
                                                        const GivenDirections* directions) override {
    return catch_out_of_memory([&]() -> Result<std::unique_ptr<Tracker>> {
      if (shared_ == nullptr) return fail(ErrorKind::invalid_state, "another plan before prepare");
      auto other = std::make_unique<CpuTracker>(pool_);
      CGL_TRY(other->prepare_on(shared_, plan, seeds, directions));
      return other;
    });
  }

  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    return catch_out_of_memory([&] { return track_range(range, batch, cancel); });
  }

 private:
  Status prepare_on(std::shared_ptr<FieldOfPlans> shared, const TrackingPlan& plan, const Seeds& seeds,
                    const GivenDirections* directions) {
    const Field& field = *shared->field;
    CGL_TRY(check_plan_and_field(plan, field));
    CGL_TRY(check_given_directions(directions, seeds));
    const auto make = [&]() -> Result<std::shared_ptr<const GetterTables>> {
      CGL_TRY_ASSIGN(KernelTables tables, make_kernel_tables(plan, field));
      auto made = std::make_shared<GetterTables>(std::move(tables));
      made->input = make_tracking_input(plan, field, made->tables);
      made->aligned = AlignedTables(made->tables, made->input);
      return made;
    };
    CGL_TRY_ASSIGN(tables_, shared->tables.get(plan.getter, make));
    shared_ = std::move(shared);
    input_ = tables_->input;
    input_.plan = plan;
    seeds_ = &seeds;
    directions_ = directions;
    workspaces_.clear();
    return {};
  }

  Status track_range(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) {
    CGL_TRY(check_seed_range(range, seeds_));
    std::vector<numerics::Vec3> positions(range.count);
    seeds_->fill(range.first, positions);
    const std::vector<std::uint32_t> order = order_in_space(positions);

    std::mutex mutex;
    std::vector<std::unique_ptr<Findings>> findings;  // those that no thread adds to
    Counts total;
    pool_.parallel_for(range.count, seeds_per_group, [&](std::size_t begin, std::size_t end) {
      if (cancel.cancelled()) return;
      std::unique_ptr<Workspace> workspace = take_workspace();
      std::unique_ptr<Findings> found;
      {
        const std::lock_guard lock(mutex);
        found = take_last(findings);
      }
      if (!found) found = std::make_unique<Findings>();
      Counts counts;
      workspace->lines.clear();
      for (std::size_t i = begin; i < end; ++i) {
        start_seed(range.first + order[i], positions[order[i]], *workspace, counts);
      }
      track_lines(*workspace, *found, counts);
      const std::scoped_lock lock(mutex, memory_mutex_);
      workspaces_.push_back(std::move(workspace));
      findings.push_back(std::move(found));
      total.steps += counts.steps;
      total.seeds_outside += counts.seeds_outside;
      total.seeds_without_direction += counts.seeds_without_direction;
    });
    CGL_TRY(cancel.check());
    assemble(range, findings, total, batch);
    const std::lock_guard lock(memory_mutex_);
    for (const auto& found : findings) {
      std::move(found->blocks.begin(), found->blocks.end(), std::back_inserter(blocks_));
    }
    return {};
  }

  std::unique_ptr<Workspace> take_workspace() {
    {
      const std::lock_guard lock(memory_mutex_);
      if (std::unique_ptr<Workspace> workspace = take_last(workspaces_)) return workspace;
    }
    return std::make_unique<Workspace>(input_, kernels_.halves_at_once(input_));
  }

  PointBlock take_block(std::size_t numbers) {
    PointBlock block;
    {
      const std::lock_guard lock(memory_mutex_);
      if (!blocks_.empty()) {
        block = std::move(blocks_.back());
        blocks_.pop_back();
      }
    }
    block.clear();
    block.reserve(std::max(numbers, numbers_of_block));
    return block;
  }

  // Memory for the points of a line; it does not move.
  float* allocate_points(std::size_t numbers, Findings& found) {
    if (found.blocks.empty() || found.blocks.back().capacity() - found.blocks.back().size() < numbers) {
      found.blocks.push_back(take_block(numbers));
    }
    PointBlock& block = found.blocks.back();
    const std::size_t before = block.size();
    block.resize(before + numbers);
    return block.data() + before;
  }

  // The lines that begin at a seed.
  void start_seed(std::uint64_t index, numerics::Vec3 position, Workspace& workspace, Counts& counts) const {
    const float xyz[3] = {position.x, position.y, position.z};
    InitialDirections initial = kernels_.initial_directions(
        input_, workspace.slab.slab(), static_cast<std::uint32_t>(index), xyz, workspace.directions.data());
    if (initial.seed_reason != 0u) {
      ++counts.seeds_outside;
      return;
    }
    if (directions_ != nullptr) {
      const numerics::Vec3 given = directions_->directions[index];
      std::memcpy(workspace.directions.data(), &given, sizeof(given));
      initial.count = 1;
    }
    if (initial.count == 0u) ++counts.seeds_without_direction;
    for (std::uint32_t d = 0; d < initial.count; ++d) {
      const float* direction = &workspace.directions[3 * std::size_t{d}];
      workspace.lines.push_back({index, d, {xyz[0], xyz[1], xyz[2]}, {direction[0], direction[1], direction[2]}});
    }
  }

  void track_lines(Workspace& workspace, Findings& found, Counts& counts) {
    std::vector<OpenLine>& lines = workspace.lines;
    std::vector<float>& points = workspace.ended;
    points.clear();
    HalfWalk walks[most_interleaved_halves];
    OpenLine* line_of_walk[most_interleaved_halves] = {};
    // Job 2i is the half against the direction of line i, job 2i + 1 the one along it.
    const std::size_t jobs = 2 * lines.size();
    std::size_t next_job = 0;
    const auto begin_next = [&](HalfWalk& walk, OpenLine*& line, float* memory) {
      if (input_.plan.one_sided != 0u && next_job % 2 == 0) ++next_job;
      if (next_job >= jobs) return false;
      line = &lines[next_job / 2];
      const std::uint32_t half = next_job % 2 == 0 ? 1 : 0;
      const float sign = half == 0 ? 1.0f : -1.0f;
      const float ahead[3] = {sign * line->direction[0], sign * line->direction[1], sign * line->direction[2]};
      kernels_.begin_half(input_, static_cast<std::uint32_t>(line->seed_index), line->direction_index, half, line->seed,
                          ahead, memory, walk);
      ++next_job;
      return true;
    };
    std::uint32_t under_way = 0;
    const std::uint32_t at_once = kernels_.halves_at_once(input_);
    while (under_way < at_once &&
           begin_next(walks[under_way], line_of_walk[under_way],
                      workspace.points.get() + 3 * std::size_t{input_.plan.max_steps} * under_way)) {
      ++under_way;
    }
    while (under_way > 0) {
      const std::uint32_t ended = kernels_.advance_halves(input_, workspace.slab.slab(), walks, under_way);
      const HalfWalk& walk = walks[ended];
      OpenLine& line = *line_of_walk[ended];
      line.end[walk.half] = walk.end;
      line.first_point[walk.half] = points.size();
      points.insert(points.end(), walk.points, walk.points + 3 * std::size_t{walk.end.points});
      counts.steps += walk.end.steps;
      if (!begin_next(walks[ended], line_of_walk[ended], walk.points)) {
        --under_way;
        walks[ended] = walks[under_way];
        line_of_walk[ended] = line_of_walk[under_way];
      }
    }
    for (const OpenLine& line : lines) {
      const HalfEnd& start = line.end[1];
      const HalfEnd& end = line.end[0];
      const std::uint32_t count = start.points + 1 + end.points;
      float* out = allocate_points(3 * std::size_t{count}, found);
      found.lines.push_back({line.seed_index,
                             out,
                             line.direction_index,
                             start.points,
                             count,
                             {static_cast<std::uint8_t>(start.reason), static_cast<std::uint8_t>(end.reason)}});
      for (std::size_t i = start.points; i > 0; --i) {
        out = std::copy_n(points.data() + line.first_point[1] + 3 * (i - 1), 3, out);
      }
      out = std::copy_n(line.seed, 3, out);
      std::copy_n(points.data() + line.first_point[0], 3 * std::size_t{end.points}, out);
    }
  }

  void assemble(SeedRange range, const std::vector<std::unique_ptr<Findings>>& findings, const Counts& total,
                StreamlineBatch& batch) const {
    std::vector<const FoundLine*> lines;
    for (const auto& found : findings) {
      for (const FoundLine& line : found->lines) lines.push_back(&line);
    }
    std::sort(lines.begin(), lines.end(), [](const FoundLine* a, const FoundLine* b) {
      if (a->seed_index != b->seed_index) return a->seed_index < b->seed_index;
      return a->direction_index < b->direction_index;
    });
    const std::size_t count = lines.size();
    batch.seeds = range;
    batch.offsets.resize(count + 1);
    batch.seed_index.resize(count);
    batch.seed_point.resize(count);
    batch.end_reason.resize(2 * count);
    batch.offsets[0] = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const FoundLine& line = *lines[i];
      batch.offsets[i + 1] = batch.offsets[i] + line.point_count;
      batch.seed_index[i] = line.seed_index;
      batch.seed_point[i] = line.seed_point;
      batch.end_reason[2 * i] = line.reasons[0];
      batch.end_reason[2 * i + 1] = line.reasons[1];
    }
    make_room(batch.points, 3 * batch.offsets[count]);
    pool_.parallel_for(count, 256, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        std::memcpy(batch.points.data() + 3 * batch.offsets[i], lines[i]->points,
                    3 * sizeof(float) * lines[i]->point_count);
      }
    });
    batch.steps = total.steps;
    batch.seeds_outside = total.seeds_outside;
    batch.seeds_without_direction = total.seeds_without_direction;
  }

  ThreadPool& pool_;
  const CpuKernels& kernels_ = best_cpu_kernels();
  std::shared_ptr<FieldOfPlans> shared_;
  std::shared_ptr<const GetterTables> tables_;
  TrackingInput input_{};
  const Seeds* seeds_ = nullptr;
  const GivenDirections* directions_ = nullptr;
  std::mutex memory_mutex_;                             // guards all below
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // those that no thread uses
  std::vector<PointBlock> blocks_;                      // those that hold nothing
};

}  // namespace

std::unique_ptr<Tracker> make_cpu_tracker(ThreadPool& pool) {
  return std::make_unique<CpuTracker>(pool);
}

}  // namespace cingulum
