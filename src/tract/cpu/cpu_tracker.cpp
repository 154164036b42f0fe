// The tracker of the CPU: the reference that devices must equal. Seeds are worked on along a space-filling curve, in
// small groups that go to whichever thread is free; what each thread found is put in the order of the seeds at the end.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "tract/cpu/tables.hpp"
#include "tract/cpu/track_kernels.hpp"
#include "tract/run/kept_by_getter.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seed_order.hpp"

namespace cingulum {
namespace {

// Few enough that the last groups end together, enough that taking one costs nothing.
constexpr std::size_t seeds_per_group = 16;

// What one group of seeds gave, streamline after streamline.
struct GroupResult {
  struct Line {
    std::uint64_t seed_index;
    std::uint32_t direction_index;
    std::uint32_t seed_point;
    std::uint64_t first_point;
    std::uint32_t points;
    std::uint8_t reasons[2];
  };
  std::vector<Line> lines;
  std::vector<float> points;
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

struct Workspace {
  Workspace(const TrackingInput& input, std::uint32_t halves)
      : slab(input),
        directions(3 * most_initial_directions),
        points(std::make_unique_for_overwrite<float[]>(3 * std::size_t{input.plan.max_steps} * halves)) {}

  SlabMemory slab;
  std::vector<float> directions;
  std::unique_ptr<float[]> points;  // of the halves that are under way
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
    std::vector<std::unique_ptr<GroupResult>> results;
    Counts total;
    pool_.parallel_for(range.count, seeds_per_group, [&](std::size_t begin, std::size_t end) {
      if (cancel.cancelled()) return;
      std::unique_ptr<Workspace> workspace = take_workspace();
      auto result = std::make_unique<GroupResult>();
      Counts counts;
      std::vector<OpenLine> lines;
      for (std::size_t i = begin; i < end; ++i) {
        start_seed(range.first + order[i], positions[order[i]], *workspace, lines, counts);
      }
      track_lines(lines, *workspace, *result, counts);
      const std::scoped_lock lock(mutex, workspace_mutex_);
      workspaces_.push_back(std::move(workspace));
      results.push_back(std::move(result));
      total.steps += counts.steps;
      total.seeds_outside += counts.seeds_outside;
      total.seeds_without_direction += counts.seeds_without_direction;
    });
    CGL_TRY(cancel.check());
    assemble(range, results, total, batch);
    return {};
  }

  std::unique_ptr<Workspace> take_workspace() {
    {
      const std::lock_guard lock(workspace_mutex_);
      if (!workspaces_.empty()) {
        std::unique_ptr<Workspace> workspace = std::move(workspaces_.back());
        workspaces_.pop_back();
        return workspace;
      }
    }
    return std::make_unique<Workspace>(input_, kernels_.halves_at_once(input_));
  }

  // The lines that begin at a seed.
  void start_seed(std::uint64_t index, numerics::Vec3 position, Workspace& workspace, std::vector<OpenLine>& lines,
                  Counts& counts) const {
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
      lines.push_back({index, d, {xyz[0], xyz[1], xyz[2]}, {direction[0], direction[1], direction[2]}});
    }
  }

  void track_lines(std::vector<OpenLine>& lines, Workspace& workspace, GroupResult& result, Counts& counts) const {
    std::vector<float> points;  // of halves, one after another
    HalfWalk walks[most_halves_in_turn];
    OpenLine* line_of_walk[most_halves_in_turn] = {};
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
      result.lines.push_back({line.seed_index,
                              line.direction_index,
                              start.points,
                              result.points.size() / 3,
                              start.points + 1 + end.points,
                              {static_cast<std::uint8_t>(start.reason), static_cast<std::uint8_t>(end.reason)}});
      for (std::size_t i = start.points; i > 0; --i) {
        const float* point = points.data() + line.first_point[1] + 3 * (i - 1);
        result.points.insert(result.points.end(), point, point + 3);
      }
      result.points.insert(result.points.end(), line.seed, line.seed + 3);
      const float* along = points.data() + line.first_point[0];
      result.points.insert(result.points.end(), along, along + 3 * std::size_t{end.points});
    }
  }

  void assemble(SeedRange range, const std::vector<std::unique_ptr<GroupResult>>& results, const Counts& total,
                StreamlineBatch& batch) const {
    struct Source {
      const GroupResult* group;
      const GroupResult::Line* line;
    };
    std::vector<Source> sources;
    for (const auto& result : results) {
      for (const GroupResult::Line& line : result->lines) sources.push_back({result.get(), &line});
    }
    std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
      if (a.line->seed_index != b.line->seed_index) return a.line->seed_index < b.line->seed_index;
      return a.line->direction_index < b.line->direction_index;
    });
    const std::size_t count = sources.size();
    batch.seeds = range;
    batch.offsets.resize(count + 1);
    batch.seed_index.resize(count);
    batch.seed_point.resize(count);
    batch.end_reason.resize(2 * count);
    batch.offsets[0] = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const GroupResult::Line& line = *sources[i].line;
      batch.offsets[i + 1] = batch.offsets[i] + line.points;
      batch.seed_index[i] = line.seed_index;
      batch.seed_point[i] = line.seed_point;
      batch.end_reason[2 * i] = line.reasons[0];
      batch.end_reason[2 * i + 1] = line.reasons[1];
    }
    batch.points.resize(3 * batch.offsets[count]);
    pool_.parallel_for(count, 256, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const GroupResult::Line& line = *sources[i].line;
        std::memcpy(batch.points.data() + 3 * batch.offsets[i], sources[i].group->points.data() + 3 * line.first_point,
                    3 * sizeof(float) * line.points);
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
  std::mutex workspace_mutex_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // those that no thread uses; guarded by workspace_mutex_
};

}  // namespace

std::unique_ptr<Tracker> make_cpu_tracker(ThreadPool& pool) {
  return std::make_unique<CpuTracker>(pool);
}

}  // namespace cingulum
