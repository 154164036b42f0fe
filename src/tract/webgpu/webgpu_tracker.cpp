#include "tract/webgpu/webgpu_tracker.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "numerics/lanes_portable.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/field/brick_schedule.hpp"
#include "tract/field/field_fit.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/run/backends.hpp"
#include "tract/seeds/seed_order.hpp"
#include "tract/webgpu/page_store.hpp"
#include "tract/webgpu/probe_words.hpp"
#include "tract/webgpu/shader_form.hpp"
#include "tract/webgpu/streamline_words.hpp"
#include "tract/webgpu/webgpu_field.hpp"
#include "tract/webgpu/webgpu_shader.hpp"

namespace cingulum {
namespace {

// The most seeds of one upload; larger ranges are tracked in several.
constexpr std::uint32_t most_seeds_at_once = 1u << 18;
constexpr std::uint32_t fewest_seeds_at_once = 256;
constexpr std::uint32_t guaranteed_bindings = 8;     // what every WebGPU device has
constexpr std::uint32_t bindings_besides_field = 3;  // tables, work, pages
constexpr std::uint32_t shares_of_one = 4;           // how many times the usual calls a workgroup may make
constexpr std::uint32_t most_sphere_rows = 64;       // find_peaks.wgsl keeps a bit per row in two words

// A dispatch shall end soon, so that a display stays alive and an interrupt is heard, but not too soon: at its end it
// waits for the slowest workgroup.
constexpr double shortest_dispatch_seconds = 0.06;
constexpr double longest_dispatch_seconds = 0.2;

constexpr std::uint64_t byte_of(WorkCounter counter) {
  return static_cast<std::uint64_t>(counter) * sizeof(std::uint32_t);
}

class WebgpuTracker final : public Tracker {
 public:
  WebgpuTracker(Device& device, const WebgpuTrackerOptions& options) : device_(device), options_(options) {
    const bool software = device.capabilities().software;
    workgroups_ = options.workgroups != 0 ? options.workgroups : software ? 64 : 4096;
    pages_wanted_ = options.pages != 0 ? options.pages : software ? 1u << 14 : 1u << 18;
    // The pages should suffice for what a dispatch can fill, else workgroups wait for the host.
    largest_budget_ = std::max(64u, points_per_page / 2 * (pages_wanted_ / workgroups_));
  }

  [[nodiscard]] std::string name() const override { return device_.id(); }
  [[nodiscard]] TrackerHints hints() const override {
    // Several, because a range takes longer to be downloaded and put in order on the host than to be tracked.
    TrackerHints hints = device_.capabilities().software ? TrackerHints{1, 256} : TrackerHints{4, 32768};
    // Bricks come and go for all.
    if (field_ && !field_->bricks().empty()) hints.callers = 1;
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
      CGL_TRY_ASSIGN(const DeviceTables tables, make_device_tables(plan, field));
      give_up_memory();
      input_ = tables.input;
      CGL_TRY(bound_dispatches());
      const MemoryNeed whole = memory_need(tables, field);
      MemoryNeed besides = whole;
      besides.field_bytes = 0;
      const FieldFit fit{.whole = whole,
                         .besides_bricks = besides.total_bytes(),
                         .most_reached = reached_bytes(field),
                         .planes_in_reach = planes_in_reach(plan)};
      const auto attempt = [&](FieldBricks bricks) -> Status {
        const std::uint64_t records = records_at_once(field, bricks);
        auto on_device = std::make_shared<WebgpuField>(device_);
        CGL_TRY(on_device->bring(field, std::move(bricks), pieces_of(field, records), records, fit.planes_in_reach));
        return prepare_on(std::move(on_device), plan, &tables, seeds, directions);
      };
      return fit_field(device_, field, fit, attempt, [&] { give_up_memory(); });
    });
  }

  [[nodiscard]] Result<std::unique_ptr<Tracker>> beside(const TrackingPlan& plan, const Seeds& seeds,
                                                        const GivenDirections* directions) override {
    return catch_out_of_memory([&]() -> Result<std::unique_ptr<Tracker>> {
      if (field_ == nullptr) return fail(ErrorKind::invalid_state, "device {}: another plan before prepare", name());
      CGL_TRY(check_plan_and_field(plan, field_->field()));
      CGL_TRY(check_given_directions(directions, seeds));
      auto other = std::make_unique<WebgpuTracker>(device_, options_);
      CGL_TRY(other->prepare_on(field_, plan, nullptr, seeds, directions));
      return other;
    });
  }

  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    return catch_out_of_memory([&] { return track_range(range, batch, cancel); });
  }

  [[nodiscard]] double kernel_seconds() const override {
    return 1e-9 * static_cast<double>(kernel_nanoseconds_.load());
  }

 private:
  [[nodiscard]] Status prepare_on(std::shared_ptr<WebgpuField> field, const TrackingPlan& plan,
                                  const DeviceTables* made, const Seeds& seeds, const GivenDirections* directions) {
    CGL_TRY_ASSIGN(tables_, field->tables_for(plan, made));
    device_tables_ = tables_->tables;
    device_tables_.input.plan = plan;
    input_ = device_tables_.input;
    field_ = std::move(field);
    CGL_TRY(make_probe_tables(directions));
    Status ready = make_machinery(seeds.count());
    if (!ready && ready.error().kind() == ErrorKind::out_of_memory && probes_) {
      give_up_probes();
      ready = make_machinery(seeds.count());
    }
    CGL_TRY(std::move(ready));
    seeds_ = &seeds;
    directions_ = directions;
    kernel_nanoseconds_ = 0;
    return {};
  }

  // The need with the smallest workspace that may be.
  [[nodiscard]] MemoryNeed memory_need(const DeviceTables& tables, const Field& field) const {
    return {.field_bytes = std::uint64_t{field.record_count()} * field.stride * field.number_bytes(),
            .tables_bytes = (tables.words.size() + field.record_of_voxel.size()) * sizeof(std::uint32_t),
            .working_bytes = WebgpuField::page_memory(std::min(pages_wanted_, WebgpuField::fewest_pages)) +
                             work_memory(fewest_seeds_at_once)};
  }
  [[nodiscard]] std::uint32_t value_words() const { return probes_ ? tracking_value_words(input_) : 0u; }
  [[nodiscard]] std::uint64_t work_memory(std::uint32_t seeds) const {
    return (work_counter_words + std::uint64_t{workgroups_} * state_words + std::uint64_t{seeds} * seed_words +
            std::uint64_t{workgroups_} * value_words()) *
           sizeof(std::uint32_t);
  }
  // Seeds of this plan for which a workspace has room.
  [[nodiscard]] std::uint32_t seed_capacity(const WebgpuWorkspace& workspace) const {
    const std::uint64_t seeds = (workspace.work->bytes() - work_memory(0)) / (seed_words * sizeof(std::uint32_t));
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(seeds, most_seeds_at_once));
  }

  void give_up_memory() {
    seeds_ = nullptr;
    give_up_probes();
    kernel_.reset();
    tables_.reset();
    field_.reset();
  }

  void give_up_probes() {
    probe_tables_.reset();
    probes_ = false;
  }

  [[nodiscard]] bool wants_probes(const GivenDirections* directions) const {
    return choose_shader_form(input_, options_, device_.capabilities(),
                              {.starts_are_unit = starts_are_unit(device_tables_, directions),
                               .in_bricks = !field_->bricks().empty(),
                               .field_pieces = field_->pieces().count,
                               .largest_binding_bytes = largest_binding()})
        .probes;
  }

  // Where there is no memory for these tables, without them.
  [[nodiscard]] Status make_probe_tables(const GivenDirections* directions) {
    probes_ = false;
    if (!wants_probes(directions)) return {};
    const std::vector<std::uint32_t> words = make_probe_words(device_tables_, field_->field());
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
    return field_->have_workspace(work_memory(fewest_seeds_at_once), pages_wanted_);
  }

  [[nodiscard]] std::uint64_t largest_binding() const {
    const std::uint64_t adapter =
        std::min(device_.capabilities().largest_binding_bytes, device_.capabilities().largest_buffer_bytes);
    return options_.largest_binding_bytes != 0 ? std::min(adapter, options_.largest_binding_bytes) : adapter;
  }

  [[nodiscard]] Status bound_dispatches() {
    if (!device_.capabilities().software) return {};
    const std::uint64_t calls = most_software_rounds / rounds_of_a_call(input_, probes_);
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
  // Bytes of records that all bindings together can address.
  [[nodiscard]] std::uint64_t reached_bytes(const Field& field) const {
    const std::uint64_t record_bytes = std::uint64_t{field.stride} * field.number_bytes();
    return largest_binding() / record_bytes * record_bytes * most_pieces();
  }
  // Records that are on the device at the same time.
  [[nodiscard]] static std::uint64_t records_at_once(const Field& field, const FieldBricks& bricks) {
    if (bricks.empty()) return field.record_count();
    return (bricks.largest_bytes() / field.number_bytes() - Field::record_padding) / field.stride;
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
    const ShaderForm form =
        choose_shader_form(input_, options_, device_.capabilities(),
                           {.largest_binding_bytes = largest_binding(), .seeds = seeds, .probe_tables_there = probes_});
    if (form.lanes == LaneForm::subgroup && !subgroups_are_32_wide(device_.capabilities())) {
      return fail(ErrorKind::unavailable, "device {}: its subgroups are not 32 wide", device_.id());
    }
    const FieldPieces& pieces = field_->pieces();
    const std::vector<PlanNumber> numbers = plan_numbers(device_tables_, pieces, {});
    CGL_TRY_ASSIGN(kernel_, field_->kernel_for(make_tracking_shader(input_, numbers, pieces, form)));
    return {};
  }

  // The brick for which most workgroups wait. All that have not finished do.
  [[nodiscard]] Result<std::uint32_t> wanted_brick(WebgpuWorkspace& workspace, std::uint32_t workgroups) const {
    std::vector<std::uint32_t> states(std::size_t{workgroups} * state_words);
    CGL_TRY(download(*workspace.queue, std::span(states), *workspace.work, work_counter_words * sizeof(std::uint32_t)));
    CGL_TRY(workspace.queue->synchronise());
    BrickWaits waits(field_->bricks());
    for (std::uint32_t workgroup = 0; workgroup < workgroups; ++workgroup) {
      LineWords line{};
      std::memcpy(&line, &states[std::size_t{workgroup} * state_words], sizeof line);
      if (line.phase != static_cast<std::uint32_t>(LinePhase::free)) waits.add(line.position.z, workgroup);
    }
    const std::optional<std::uint32_t> wanted = waits.most_wanted();
    if (!wanted || *wanted == field_->resident_brick()) return tl::make_unexpected(stuck_in_brick(device_.id()));
    return *wanted;
  }

  Status track_range(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) {
    CGL_TRY(check_seed_range(range, seeds_));
    std::vector<numerics::Vec3> positions(range.count);
    seeds_->fill(range.first, positions);
    std::vector<std::uint32_t> order = order_in_space(positions);
    std::unique_lock<std::mutex> alone;
    if (!field_->bricks().empty()) {
      alone = std::unique_lock(field_->brick_mutex());
      sort_by_brick(field_->bricks(), positions, order);
    }
    std::vector<PageBlock> blocks;
    SeedCounts counts;
    const auto wanted = static_cast<std::uint32_t>(
        std::bit_ceil(std::clamp<std::uint64_t>(range.count, fewest_seeds_at_once, most_seeds_at_once)));
    CGL_TRY_ASSIGN(std::unique_ptr<WebgpuWorkspace> workspace,
                   field_->take_workspace(work_memory(wanted), work_memory(fewest_seeds_at_once)));
    const std::size_t at_once = seed_capacity(*workspace);
    workspace->cancel = cancel;
    Status tracked;
    for (std::size_t first = 0; tracked && first < order.size(); first += at_once) {
      const std::span<const std::uint32_t> some =
          std::span(order).subspan(first, std::min(at_once, order.size() - first));
      tracked = track_some(range, positions, some, *workspace, blocks, counts);
    }
    // Nothing may be under way in memory that the next call uses.
    if (!tracked) static_cast<void>(workspace->queue->synchronise());
    field_->give_back(std::move(workspace));
    CGL_TRY(std::move(tracked));
    Status done = assemble_pages(blocks, range, positions, counts, batch);
    field_->keep_blocks(blocks);
    return done;
  }

  Status upload_seeds(SeedRange range, const std::vector<numerics::Vec3>& positions,
                      std::span<const std::uint32_t> some, WebgpuWorkspace& workspace) const {
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
                    WebgpuWorkspace& workspace, std::vector<PageBlock>& blocks, SeedCounts& counts) {
    Queue& queue = *workspace.queue;
    const FieldBricks& bricks = field_->bricks();
    CGL_TRY(upload_seeds(range, positions, some, workspace));
    if (!bricks.empty()) CGL_TRY(field_->load_brick(queue, *tables_, bricks.brick_at(positions[some.front()].z)));
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
      launch.page_capacity = field_->pages();
      launch.at_seeds = workgroups_ * state_words;
      launch.at_values = launch.at_seeds + seed_capacity(workspace) * seed_words;
      launch.given_directions = directions_ != nullptr ? 1u : 0u;
      if (!bricks.empty()) {
        launch.brick_low = std::max(bricks.low(field_->resident_brick()), -LaunchNumbers::unbounded);
        launch.brick_high = std::min(bricks.high(field_->resident_brick()), LaunchNumbers::unbounded);
      }
      std::vector<KernelArgument> arguments = {argument(*tables_->buffer)};
      for (const auto& piece : field_->records()) arguments.push_back(argument(*piece));
      if (probes_) {
        arguments.push_back(argument(*field_->records().front()));
        arguments.push_back(argument(*probe_tables_));
      }
      arguments.push_back(argument(*workspace.work));
      arguments.push_back(argument(*workspace.pages));
      for (const PlanNumber& number : plan_numbers(device_tables_, field_->pieces(), launch))
        arguments.push_back(number.value);
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
      const std::uint32_t used = std::min(counted(WorkCounter::pages), field_->pages());
      if (finished || used > field_->pages() / 2) CGL_TRY(empty_pages(workspace, used, blocks));
      if (!bricks.empty() && !finished && counted(WorkCounter::waiting_for_brick) == unfinished) {
        CGL_TRY_ASSIGN(const std::uint32_t next, wanted_brick(workspace, workgroups));
        CGL_TRY(field_->load_brick(queue, *tables_, next));
      }
    }
    counts.outside += counters[static_cast<std::size_t>(WorkCounter::seeds_outside)];
    counts.without_direction += counters[static_cast<std::size_t>(WorkCounter::seeds_without_direction)];
    return {};
  }

  Status empty_pages(WebgpuWorkspace& workspace, std::uint32_t used, std::vector<PageBlock>& blocks) {
    if (used == 0) return {};
    PageBlock block = field_->take_block();
    block.reallocate(used);
    Queue& queue = *workspace.queue;
    CGL_TRY(download(queue, std::span(block.entries).first(used), *workspace.pages));
    CGL_TRY(download(queue, std::span(block.points).first(std::size_t{used} * page_words), *workspace.pages,
                     std::uint64_t{field_->pages()} * entry_words * sizeof(std::uint32_t)));
    CGL_TRY(queue.fill(*workspace.work, byte_of(WorkCounter::pages), sizeof(std::uint32_t), std::byte{0}));
    CGL_TRY(queue.synchronise());
    blocks.push_back(std::move(block));
    return {};
  }

  [[nodiscard]] std::uint32_t next_budget() const {
    return std::min(options_.budget != 0 ? options_.budget : tables_->budget.load(), most_calls_);
  }

  // A guess for the next one: of those who note at the same time the last one counts.
  void note_dispatch(double seconds) const {
    const std::uint32_t budget = tables_->budget;
    if (seconds < shortest_dispatch_seconds) tables_->budget = std::min(2 * budget, largest_budget_);
    if (seconds > longest_dispatch_seconds) tables_->budget = std::max(budget / 2, 1u);
  }

  Device& device_;
  WebgpuTrackerOptions options_;
  std::uint32_t workgroups_ = 0;
  std::uint32_t pages_wanted_ = 0;
  std::uint32_t largest_budget_ = 0;
  std::uint32_t most_calls_ = ~0u;      // in one dispatch
  std::shared_ptr<WebgpuField> field_;  // null before prepare
  std::shared_ptr<const WebgpuTables> tables_;
  DeviceTables device_tables_;  // those of the getter, with this plan
  TrackingInput input_{};
  bool probes_ = false;                   // ptt by ptt_probes.wgsl
  std::unique_ptr<Buffer> probe_tables_;  // where probes_ is set
  std::shared_ptr<Kernel> kernel_;
  const Seeds* seeds_ = nullptr;
  const GivenDirections* directions_ = nullptr;
  std::atomic<std::uint64_t> kernel_nanoseconds_ = 0;
};

}  // namespace

std::unique_ptr<Tracker> make_webgpu_tracker(Device& device, const WebgpuTrackerOptions& options) {
  return std::make_unique<WebgpuTracker>(device, options);
}

Result<std::unique_ptr<Tracker>> make_webgpu_tracker(Device& device) {
  return make_webgpu_tracker(device, WebgpuTrackerOptions{});
}

}  // namespace cingulum
