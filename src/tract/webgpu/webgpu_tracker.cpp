#include "tract/webgpu/webgpu_tracker.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "numerics/lanes_portable.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/field/brick_turns.hpp"
#include "tract/field/field_fit.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/run/backends.hpp"
#include "tract/seeds/seed_order.hpp"
#include "tract/webgpu/page_store.hpp"
#include "tract/webgpu/probe_words.hpp"
#include "tract/webgpu/shader_form.hpp"
#include "tract/webgpu/streamline_words.hpp"
#include "tract/webgpu/webgpu_shader.hpp"

namespace cingulum {
namespace {

constexpr std::size_t most_spare_blocks = 8;
// Of one upload; larger ranges are tracked in several.
constexpr std::uint32_t most_seeds_at_once = 1u << 18;
constexpr std::uint32_t fewest_seeds_at_once = 256;
// With as few a run still goes on, though it waits for the host more often.
constexpr std::uint32_t fewest_pages = 256;
constexpr std::uint32_t guaranteed_bindings = 8;     // what every WebGPU device has
constexpr std::uint32_t bindings_besides_field = 3;  // tables, work, pages
constexpr std::uint32_t shares_of_one = 4;           // how many times the usual calls a workgroup may make
constexpr std::uint32_t most_sphere_rows = 64;       // find_peaks.wgsl keeps a bit per row in two words

// A dispatch shall end soon, so that a display stays alive and an interrupt is heard.
// Not too soon either: at its end it waits for the slowest workgroup.
constexpr double shortest_dispatch_seconds = 0.06;
constexpr double longest_dispatch_seconds = 0.2;
constexpr std::uint32_t first_budget = 64;

constexpr std::uint64_t byte_of(WorkCounter counter) {
  return static_cast<std::uint64_t>(counter) * sizeof(std::uint32_t);
}

// What one call of track() uses.
struct Workspace {
  std::unique_ptr<Queue> queue;
  std::unique_ptr<Buffer> work;
  std::unique_ptr<Buffer> pages;
  std::uint32_t seed_capacity = 0;
  CancelToken cancel;
};

class WebgpuTracker final : public Tracker {
 public:
  WebgpuTracker(Device& device, const WebgpuTrackerOptions& options) : device_(device), options_(options) {
    const bool software = device.capabilities().software;
    workgroups_ = options.workgroups != 0 ? options.workgroups : software ? 64 : 4096;
    pages_wanted_ = options.pages != 0 ? options.pages : software ? 1u << 14 : 1u << 18;
    pages_ = pages_wanted_;
    // Of the pages that a dispatch can fill there should be enough, else workgroups wait for the host.
    largest_budget_ = std::max(64u, points_per_page / 2 * (pages_ / workgroups_));
  }

  [[nodiscard]] std::string name() const override { return device_.id(); }
  [[nodiscard]] TrackerHints hints() const override {
    // Several, because a range takes longer to be downloaded and put in order on the host than to be tracked.
    TrackerHints hints = device_.capabilities().software ? TrackerHints{1, 256} : TrackerHints{4, 32768};
    // Bricks come and go for all.
    if (!bricks_.empty()) hints.callers = 1;
    return hints;
  }

  [[nodiscard]] Status supports(const TrackingPlan& plan, const Field& field) const override {
    CGL_TRY(check_plan_and_field(plan, field));
    CGL_TRY(check_field_fits(plan, field));
    return check_workgroup_memory(field);
  }

  [[nodiscard]] Status prepare(const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                               const GivenDirections* directions) override {
    return catch_out_of_memory([&]() -> Status {
      CGL_TRY(supports(plan, field));
      CGL_TRY(check_given_directions(directions, seeds));
      CGL_TRY_ASSIGN(device_tables_, make_device_tables(plan, field));
      give_up_memory();
      CGL_TRY(bound_dispatches());
      MemoryNeed besides = memory_need(field);
      besides.field_bytes = 0;
      const FieldFit fit{.whole = memory_need(field),
                         .besides_bricks = besides.total_bytes(),
                         .most_reached = reached_bytes(field),
                         .planes_in_reach = planes_in_reach(plan)};
      const auto attempt = [&](FieldBricks bricks) -> Status {
        bricks_ = std::move(bricks);
        pieces_ = pieces_of(field, records_at_once(field));
        CGL_TRY(upload_input(field));
        CGL_TRY(make_probe_tables(field, directions));
        Status made = make_machinery(seeds.count());
        if (made || made.error().kind() != ErrorKind::out_of_memory || !probes_) return made;
        give_up_probes();
        return make_machinery(seeds.count());
      };
      CGL_TRY(fit_field(device_, field, fit, attempt, [&] { give_up_memory(); }));
      seeds_ = &seeds;
      directions_ = directions;
      kernel_nanoseconds_ = 0;
      return {};
    });
  }

  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    return catch_out_of_memory([&] { return track_range(range, batch, cancel); });
  }

  [[nodiscard]] double kernel_seconds() const override {
    return 1e-9 * static_cast<double>(kernel_nanoseconds_.load());
  }

 private:
  // With the smallest workspace there may be.
  [[nodiscard]] MemoryNeed memory_need(const Field& field) const {
    return {.field_bytes = std::uint64_t{field.record_count()} * field.stride * field.number_bytes(),
            .tables_bytes = (device_tables_.words.size() + field.record_of_voxel.size()) * sizeof(std::uint32_t),
            .working_bytes = page_memory(std::min(pages_wanted_, fewest_pages)) + work_memory(fewest_seeds_at_once)};
  }
  [[nodiscard]] static std::uint64_t page_memory(std::uint32_t pages) {
    return std::uint64_t{pages} * (entry_words + page_words) * sizeof(std::uint32_t);
  }
  [[nodiscard]] std::uint32_t value_words() const { return probes_ ? tracking_value_words(device_tables_.input) : 0u; }
  [[nodiscard]] std::uint64_t work_memory(std::uint32_t seeds) const {
    return (work_counter_words + std::uint64_t{workgroups_} * state_words + std::uint64_t{seeds} * seed_words +
            std::uint64_t{workgroups_} * value_words()) *
           sizeof(std::uint32_t);
  }

  void give_up_memory() {
    seeds_ = nullptr;
    workspaces_.clear();
    spare_blocks_.clear();
    tables_.reset();
    probe_tables_.reset();
    field_.clear();
    bricks_ = {};
    resident_brick_.forget();
  }

  void give_up_probes() {
    probe_tables_.reset();
    probes_ = false;
  }

  [[nodiscard]] bool wants_probes(const GivenDirections* directions) const {
    return choose_shader_form(device_tables_.input, options_, device_.capabilities(),
                              {.starts_are_unit = starts_are_unit(device_tables_, directions),
                               .in_bricks = !bricks_.empty(),
                               .field_pieces = pieces_.count,
                               .largest_binding_bytes = largest_binding()})
        .probes;
  }

  // Where there is no memory for these tables, without them.
  [[nodiscard]] Status make_probe_tables(const Field& field, const GivenDirections* directions) {
    probes_ = false;
    if (!wants_probes(directions)) return {};
    const std::vector<std::uint32_t> words = make_probe_words(device_tables_, field);
    auto buffer = device_.allocate(words.size() * sizeof(std::uint32_t));
    if (!buffer && buffer.error().kind() == ErrorKind::out_of_memory) return {};
    CGL_TRY_ASSIGN(probe_tables_, std::move(buffer));
    CGL_TRY_ASSIGN(const auto queue, device_.create_queue());
    CGL_TRY(upload(*queue, *probe_tables_, std::span<const std::uint32_t>(words)));
    CGL_TRY(queue->synchronise());
    probes_ = true;
    return {};
  }

  [[nodiscard]] Status make_machinery(std::uint64_t seeds) {
    CGL_TRY(bound_dispatches());
    CGL_TRY(compile_shader(seeds));
    return make_first_workspace();
  }

  [[nodiscard]] std::uint64_t largest_binding() const {
    const std::uint64_t adapter =
        std::min(device_.capabilities().largest_binding_bytes, device_.capabilities().largest_buffer_bytes);
    return options_.largest_binding_bytes != 0 ? std::min(adapter, options_.largest_binding_bytes) : adapter;
  }

  [[nodiscard]] Status bound_dispatches() {
    if (!device_.capabilities().software) return {};
    const std::uint64_t calls = most_software_rounds / rounds_of_a_call(device_tables_.input, probes_);
    if (calls == 0) {
      return fail(ErrorKind::unavailable,
                  "device {}: a step may take more than the {} rounds of loops that a software adapter makes; use "
                  "fewer {} or {} cpu",
                  device_.id(), most_software_rounds, argument_name("ptt_tries"), argument_name("device"));
    }
    most_calls_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(calls, ~0u));
    return {};
  }

  [[nodiscard]] std::uint32_t most_pieces() const {
    const std::uint32_t bindings = options_.bindings != 0 ? options_.bindings : device_.capabilities().max_bindings;
    return std::max(guaranteed_bindings, bindings) - bindings_besides_field;
  }
  // Of records, in all bindings.
  [[nodiscard]] std::uint64_t reached_bytes(const Field& field) const {
    const std::uint64_t record_bytes = std::uint64_t{field.stride} * field.number_bytes();
    return largest_binding() / record_bytes * record_bytes * most_pieces();
  }
  // That are on the device at the same time.
  [[nodiscard]] std::uint64_t records_at_once(const Field& field) const {
    if (bricks_.empty()) return field.record_count();
    return (bricks_.largest_bytes() / field.number_bytes() - Field::record_padding) / field.stride;
  }

  [[nodiscard]] FieldPieces pieces_of(const Field& field, std::uint64_t records) const {
    const std::uint64_t record_bytes = std::uint64_t{field.stride} * field.number_bytes();
    const std::uint64_t most = std::min<std::uint64_t>(largest_binding() / record_bytes, ~0u);
    FieldPieces pieces;
    pieces.records_per_piece = static_cast<std::uint32_t>(std::min(most, records));
    pieces.count =
        pieces.records_per_piece == 0
            ? ~0u
            : static_cast<std::uint32_t>((records + pieces.records_per_piece - 1) / pieces.records_per_piece);
    return pieces;
  }

  [[nodiscard]] Status check_field_fits(const TrackingPlan& plan, const Field& field) const {
    if (pieces_of(field, field.record_count()).count > most_pieces() &&
        FieldBricks::cut(field, planes_in_reach(plan), reached_bytes(field)).empty()) {
      const std::uint64_t bytes = std::uint64_t{field.record_count()} * field.stride * field.number_bytes();
      return fail(ErrorKind::unavailable,
                  "device {}: the field needs {}, its kernels reach {} ({} bindings of {}), less than a few planes of "
                  "it; use {} half, {} for fewer voxels, a smaller sphere, {} instead of {}, or {} cpu",
                  device_.id(), format_bytes(bytes), format_bytes(reached_bytes(field)), most_pieces(),
                  format_bytes(largest_binding()), argument_name("field_precision"), argument_name("mask"),
                  argument_name("sh"), argument_name("sf"), argument_name("device"));
    }
    if (std::uint64_t{field.record_of_voxel.size()} * sizeof(std::uint32_t) > largest_binding() / 2) {
      return fail(ErrorKind::unavailable,
                  "device {}: an image of {} voxels is beyond half of a binding of {}; crop it or use {} cpu",
                  device_.id(), field.record_of_voxel.size(), format_bytes(largest_binding()), argument_name("device"));
    }
    return {};
  }

  [[nodiscard]] Status check_workgroup_memory(const Field& field) const {
    const bool series = field.kind == FieldKind::harmonics || field.kind == FieldKind::bootstrap;
    const bool mirror = series && field.sphere.mirror_symmetric;
    TrackingInput counts{};
    counts.field.kind = static_cast<std::uint32_t>(field.kind);
    counts.field.channels = field.channels;
    counts.sphere.rows =
        numerics::row_count(static_cast<std::uint32_t>(mirror ? field.sphere.slots.size() : field.sphere.size()));
    counts.harmonics.coefficients = field.bootstrap.coefficients;
    counts.bootstrap.rows = numerics::row_count(field.bootstrap.gradients);
    const std::uint64_t need = tracking_workgroup_bytes(counts, true);
    const std::uint64_t have = std::max<std::uint64_t>(guaranteed_workgroup_bytes, device_.capabilities().shared_bytes);
    if (need <= have && counts.sphere.rows <= most_sphere_rows) return {};
    return fail(ErrorKind::unavailable,
                "device {}: {} directions (at most {}) and records of {} numbers need {} of workgroup memory, there "
                "are {}; use a smaller sphere, fewer gradients or {} cpu",
                device_.id(), field.sphere.size(), numerics::lane_count * most_sphere_rows, field.channels,
                format_bytes(need), format_bytes(have), argument_name("device"));
  }

  [[nodiscard]] Status compile_shader(std::uint64_t seeds) {
    const TrackingInput& input = device_tables_.input;
    const ShaderForm form =
        choose_shader_form(input, options_, device_.capabilities(),
                           {.largest_binding_bytes = largest_binding(), .seeds = seeds, .probe_tables_there = probes_});
    if (form.lanes == LaneForm::subgroup && !subgroups_are_32_wide(device_.capabilities())) {
      return fail(ErrorKind::unavailable, "device {}: its subgroups are not 32 wide", device_.id());
    }
    const std::vector<PlanNumber> numbers = plan_numbers(device_tables_, pieces_, {});
    CGL_TRY_ASSIGN(kernel_, device_.compile(make_tracking_shader(input, numbers, pieces_, form)));
    const CompilationReport& report = kernel_->report();
    log_debug("device {}: the tracking kernel was compiled in {:.0f} ms{}", device_.id(), report.milliseconds,
              report.from_cache ? ", earlier" : "");
    return {};
  }

  [[nodiscard]] Status upload_input(const Field& field) {
    CGL_TRY_ASSIGN(const auto queue, device_.create_queue());
    const std::span<const std::uint32_t> words(device_tables_.words);
    const std::span<const std::uint32_t> record_of_voxel(field.record_of_voxel);
    CGL_TRY_ASSIGN(tables_, device_.allocate(words.size_bytes() + record_of_voxel.size_bytes()));
    CGL_TRY(upload(*queue, *tables_, words));
    field_.clear();
    const std::uint64_t record_bytes = std::uint64_t{field.stride} * field.number_bytes();
    const std::uint64_t records = records_at_once(field);
    for (std::uint32_t piece = 0; piece < pieces_.count; ++piece) {
      const std::uint64_t first = std::uint64_t{piece} * pieces_.records_per_piece;
      const std::uint64_t count = std::min<std::uint64_t>(pieces_.records_per_piece, records - first);
      CGL_TRY_ASSIGN(field_.emplace_back(), device_.allocate(count * record_bytes));
    }
    source_ = &field;
    if (!bricks_.empty()) {
      log_info("device {}: the field of {} is tracked in {} bricks of up to {}", device_.id(),
               format_bytes(field.stored_bytes().size()), bricks_.size(), format_bytes(bricks_.largest_bytes()));
      return queue->synchronise();
    }
    CGL_TRY(upload(*queue, *tables_, record_of_voxel, words.size_bytes()));
    CGL_TRY(upload_records(*queue, {0, 0, records}));
    return queue->synchronise();
  }

  // Records [first, first + count) of the field to the place `at`, counted in records, over all pieces.
  [[nodiscard]] Status upload_records(Queue& queue, BrickRecords records) const {
    auto [at, first, count] = records;
    const std::uint64_t record_bytes = std::uint64_t{source_->stride} * source_->number_bytes();
    while (count > 0) {
      const std::uint64_t piece = at / pieces_.records_per_piece, within = at % pieces_.records_per_piece;
      const std::uint64_t some = std::min(count, pieces_.records_per_piece - within);
      CGL_TRY(queue.upload(*field_[piece], within * record_bytes,
                           source_->stored_bytes().subspan(first * record_bytes, some * record_bytes)));
      at += some;
      first += some;
      count -= some;
    }
    return {};
  }

  [[nodiscard]] Status load_brick(Queue& queue, std::uint32_t which) {
    return resident_brick_.bring(
        *source_, bricks_, which, queue,
        [&](std::span<const std::uint32_t> numbers) {
          return upload(queue, *tables_, numbers, device_tables_.words.size() * sizeof(std::uint32_t));
        },
        [&](const BrickRecords& records) { return upload_records(queue, records); });
  }

  // The brick for which most workgroups wait. All that have not finished do.
  [[nodiscard]] Result<std::uint32_t> wanted_brick(Workspace& workspace, std::uint32_t workgroups) const {
    std::vector<std::uint32_t> states(std::size_t{workgroups} * state_words);
    CGL_TRY(download(*workspace.queue, std::span(states), *workspace.work, work_counter_words * sizeof(std::uint32_t)));
    CGL_TRY(workspace.queue->synchronise());
    BrickWaits waits(bricks_);
    for (std::uint32_t workgroup = 0; workgroup < workgroups; ++workgroup) {
      LineWords line{};
      std::memcpy(&line, &states[std::size_t{workgroup} * state_words], sizeof line);
      if (line.phase != static_cast<std::uint32_t>(LinePhase::free)) waits.add(line.position.z, workgroup);
    }
    const std::optional<std::uint32_t> wanted = waits.most_wanted();
    if (!wanted || *wanted == resident_brick_.which()) return tl::make_unexpected(stuck_in_brick(device_.id()));
    return *wanted;
  }

  // There is one from the beginning, so that a run which has begun does not fail for want of memory; with fewer pages
  // where the device has not more.
  [[nodiscard]] Status make_first_workspace() {
    for (pages_ = pages_wanted_;; pages_ = std::max(pages_ / 2, fewest_pages)) {
      auto made = make_workspace(fewest_seeds_at_once);
      if (made) {
        workspaces_.push_back(std::move(*made));
        return {};
      }
      if (made.error().kind() != ErrorKind::out_of_memory || pages_ <= fewest_pages) {
        return tl::make_unexpected(std::move(made.error()));
      }
    }
  }

  [[nodiscard]] Result<std::unique_ptr<Workspace>> make_workspace(std::uint32_t seeds) {
    auto workspace = std::make_unique<Workspace>();
    CGL_TRY_ASSIGN(workspace->queue, device_.create_queue());
    CGL_TRY_ASSIGN(workspace->pages, device_.allocate(page_memory(pages_)));
    CGL_TRY_ASSIGN(workspace->work, device_.allocate(work_memory(seeds)));
    workspace->seed_capacity = seeds;
    return workspace;
  }

  // Another caller's where there is no memory for one more, with room for fewer seeds where that is short.
  [[nodiscard]] Result<std::unique_ptr<Workspace>> take_workspace(std::uint32_t seeds) {
    std::unique_ptr<Workspace> workspace;
    {
      std::unique_lock lock(mutex_);
      if (workspaces_.empty()) {
        lock.unlock();
        auto made = make_workspace(fewest_seeds_at_once);
        if (!made && made.error().kind() != ErrorKind::out_of_memory) return made;
        if (made) workspace = std::move(*made);
        lock.lock();
      }
      if (workspace == nullptr) {
        workspace_is_free_.wait(lock, [&] { return !workspaces_.empty(); });
        workspace = std::move(workspaces_.back());
        workspaces_.pop_back();
      }
    }
    if (workspace->seed_capacity < seeds) {
      const std::uint32_t capacity = std::min(most_seeds_at_once, std::bit_ceil(seeds));
      if (auto larger = device_.allocate(work_memory(capacity)); larger) {
        workspace->work = std::move(*larger);
        workspace->seed_capacity = capacity;
      }
    }
    return workspace;
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    {
      const std::lock_guard lock(mutex_);
      workspaces_.push_back(std::move(workspace));
    }
    workspace_is_free_.notify_all();
  }

  Status track_range(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) {
    CGL_TRY(check_seed_range(range, seeds_));
    std::vector<numerics::Vec3> positions(range.count);
    seeds_->fill(range.first, positions);
    std::vector<std::uint32_t> order = order_in_space(positions);
    std::unique_lock<std::mutex> alone;
    if (!bricks_.empty()) {
      alone = std::unique_lock(brick_mutex_);
      sort_by_brick(bricks_, positions, order);
    }
    std::vector<PageBlock> blocks;
    SeedCounts counts;
    CGL_TRY_ASSIGN(
        std::unique_ptr<Workspace> workspace,
        take_workspace(static_cast<std::uint32_t>(std::min<std::uint64_t>(range.count, most_seeds_at_once))));
    const std::size_t at_once = workspace->seed_capacity;
    workspace->cancel = cancel;
    Status tracked;
    for (std::size_t first = 0; tracked && first < order.size(); first += at_once) {
      const std::span<const std::uint32_t> some =
          std::span(order).subspan(first, std::min(at_once, order.size() - first));
      tracked = track_some(range, positions, some, *workspace, blocks, counts);
    }
    // Nothing may be under way in memory that the next call uses.
    if (!tracked) static_cast<void>(workspace->queue->synchronise());
    give_back(std::move(workspace));
    CGL_TRY(std::move(tracked));
    Status done = assemble_pages(blocks, range, positions, counts, batch);
    const std::lock_guard lock(mutex_);
    for (PageBlock& block : blocks) {
      if (spare_blocks_.size() < most_spare_blocks) spare_blocks_.push_back(std::move(block));
    }
    return done;
  }

  Status upload_seeds(SeedRange range, const std::vector<numerics::Vec3>& positions,
                      std::span<const std::uint32_t> some, Workspace& workspace) const {
    const std::uint64_t at_seeds = work_counter_words + std::uint64_t{workgroups_} * state_words;
    std::vector<SeedWords> words(some.size());
    for (std::size_t i = 0; i < some.size(); ++i) {
      words[i].position = positions[some[i]];
      words[i].number = some[i];
      if (directions_ != nullptr) words[i].given = directions_->directions[range.first + some[i]];
    }
    // Zeros: all counters, and every workgroup free.
    CGL_TRY(workspace.queue->fill(*workspace.work, 0, at_seeds * sizeof(std::uint32_t), std::byte{0}));
    CGL_TRY(
        upload(*workspace.queue, *workspace.work, std::span<const SeedWords>(words), at_seeds * sizeof(std::uint32_t)));
    // `words` goes: the queue may read it until then.
    return workspace.queue->synchronise();
  }

  // Dispatches until all these seeds are done; their points go to `blocks`.
  Status track_some(SeedRange range, const std::vector<numerics::Vec3>& positions, std::span<const std::uint32_t> some,
                    Workspace& workspace, std::vector<PageBlock>& blocks, SeedCounts& counts) {
    Queue& queue = *workspace.queue;
    CGL_TRY(upload_seeds(range, positions, some, workspace));
    if (!bricks_.empty()) CGL_TRY(load_brick(queue, bricks_.brick_at(positions[some.front()].z)));
    std::array<std::uint32_t, work_counter_words> counters{};
    for (bool finished = false; !finished;) {
      CGL_TRY(workspace.cancel.check());
      LaunchNumbers launch;
      launch.seed_count = static_cast<std::uint32_t>(some.size());
      launch.first_seed = static_cast<std::uint32_t>(range.first);
      launch.budget = next_budget();
      if (probes_) {
        launch.call_shares = workgroups_ * ((launch.budget + calls_of_a_share - 1) / calls_of_a_share);
        // What others do not use: those that the device starts first work longest.
        launch.budget = std::min(most_calls_, shares_of_one * launch.budget);
      }
      launch.page_capacity = pages_;
      launch.at_seeds = workgroups_ * state_words;
      launch.at_values = launch.at_seeds + workspace.seed_capacity * seed_words;
      launch.given_directions = directions_ != nullptr ? 1u : 0u;
      if (!bricks_.empty()) {
        launch.brick_low = std::max(bricks_.low(resident_brick_.which()), -LaunchNumbers::unbounded);
        launch.brick_high = std::min(bricks_.high(resident_brick_.which()), LaunchNumbers::unbounded);
      }
      std::vector<KernelArgument> arguments = {argument(*tables_)};
      for (const auto& piece : field_) arguments.push_back(argument(*piece));
      if (probes_) {
        arguments.push_back(argument(*field_.front()));
        arguments.push_back(argument(*probe_tables_));
      }
      arguments.push_back(argument(*workspace.work));
      arguments.push_back(argument(*workspace.pages));
      for (const PlanNumber& number : plan_numbers(device_tables_, pieces_, launch)) arguments.push_back(number.value);
      const std::uint32_t workgroups = std::min<std::uint32_t>(workgroups_, launch.seed_count);
      const auto start = std::chrono::steady_clock::now();
      CGL_TRY(queue.fill(*workspace.work, byte_of(WorkCounter::unfinished),
                         counters_of_dispatch * sizeof(std::uint32_t), std::byte{0}));
      CGL_TRY_ASSIGN(const auto before, queue.record());
      CGL_TRY(queue.launch(*kernel_, {{workgroups, 1, 1}, {32, 1, 1}, 0}, arguments));
      CGL_TRY_ASSIGN(const auto after, queue.record());
      CGL_TRY(download(queue, std::span<std::uint32_t>(counters), *workspace.work));
      CGL_TRY(queue.synchronise());
      if (device_.capabilities().device_timestamps) {
        CGL_TRY_ASSIGN(const double milliseconds, after->milliseconds_since(*before));
        kernel_nanoseconds_ += static_cast<std::uint64_t>(std::max(0.0, 1e6 * milliseconds));
      }
      note_dispatch(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      const auto counted = [&](WorkCounter counter) { return counters[static_cast<std::size_t>(counter)]; };
      const std::uint32_t unfinished = counted(WorkCounter::unfinished);
      finished = counted(WorkCounter::next_seed) >= launch.seed_count && unfinished == 0;
      const std::uint32_t used = std::min(counted(WorkCounter::pages), pages_);
      if (finished || used > pages_ / 2) CGL_TRY(empty_pages(workspace, used, blocks));
      if (!bricks_.empty() && !finished && counted(WorkCounter::waiting_for_brick) == unfinished) {
        CGL_TRY_ASSIGN(const std::uint32_t next, wanted_brick(workspace, workgroups));
        CGL_TRY(load_brick(queue, next));
      }
    }
    counts.outside += counters[static_cast<std::size_t>(WorkCounter::seeds_outside)];
    counts.without_direction += counters[static_cast<std::size_t>(WorkCounter::seeds_without_direction)];
    return {};
  }

  Status empty_pages(Workspace& workspace, std::uint32_t used, std::vector<PageBlock>& blocks) {
    if (used == 0) return {};
    PageBlock block = take_block();
    block.make_room(used);
    Queue& queue = *workspace.queue;
    CGL_TRY(download(queue, std::span(block.entries).first(used), *workspace.pages));
    CGL_TRY(download(queue, std::span(block.points).first(std::size_t{used} * page_words), *workspace.pages,
                     std::uint64_t{pages_} * entry_words * sizeof(std::uint32_t)));
    CGL_TRY(queue.fill(*workspace.work, byte_of(WorkCounter::pages), sizeof(std::uint32_t), std::byte{0}));
    CGL_TRY(queue.synchronise());
    blocks.push_back(std::move(block));
    return {};
  }

  PageBlock take_block() {
    const std::lock_guard lock(mutex_);
    if (spare_blocks_.empty()) return {};
    PageBlock block = std::move(spare_blocks_.back());
    spare_blocks_.pop_back();
    return block;
  }

  std::uint32_t next_budget() {
    const std::lock_guard lock(mutex_);
    return std::min(options_.budget != 0 ? options_.budget : budget_, most_calls_);
  }

  void note_dispatch(double seconds) {
    const std::lock_guard lock(mutex_);
    if (seconds < shortest_dispatch_seconds) budget_ = std::min(2 * budget_, largest_budget_);
    if (seconds > longest_dispatch_seconds) budget_ = std::max(budget_ / 2, 1u);
  }

  Device& device_;
  WebgpuTrackerOptions options_;
  std::uint32_t workgroups_ = 0;
  std::uint32_t pages_wanted_ = 0;
  std::uint32_t pages_ = 0;  // of each workspace
  std::uint32_t largest_budget_ = 0;
  std::uint32_t most_calls_ = ~0u;  // in one dispatch
  bool probes_ = false;             // ptt by ptt_probes.wgsl
  DeviceTables device_tables_;
  FieldPieces pieces_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> tables_;
  std::unique_ptr<Buffer> probe_tables_;  // where probes_ is set
  std::vector<std::unique_ptr<Buffer>> field_;
  const Field* source_ = nullptr;
  FieldBricks bricks_;  // empty: the whole field is on the device
  ResidentBrick resident_brick_;
  std::mutex brick_mutex_;  // held while a range is tracked in bricks
  const Seeds* seeds_ = nullptr;
  const GivenDirections* directions_ = nullptr;
  std::atomic<std::uint64_t> kernel_nanoseconds_ = 0;
  std::mutex mutex_;  // guards what follows
  std::condition_variable workspace_is_free_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // those that no thread uses
  std::vector<PageBlock> spare_blocks_;                 // at most most_spare_blocks
  std::uint32_t budget_ = first_budget;
};

}  // namespace

std::unique_ptr<Tracker> make_webgpu_tracker(Device& device, const WebgpuTrackerOptions& options) {
  return std::make_unique<WebgpuTracker>(device, options);
}

Result<std::unique_ptr<Tracker>> make_webgpu_tracker(Device& device) {
  return make_webgpu_tracker(device, WebgpuTrackerOptions{});
}

}  // namespace cingulum
