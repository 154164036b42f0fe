#include "tract/paged/paged_tracker.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <optional>
#include <vector>

#include "base/bulk_memory.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/field/brick_schedule.hpp"
#include "tract/field/field_bricks.hpp"
#include "tract/field/field_fit.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/paged/paged_field.hpp"
#include "tract/paged/paged_memory.hpp"
#include "tract/seeds/seed_order.hpp"

namespace cingulum {
namespace {

// The lines of a piece: in the order of work, which is that of their halves' numbers, and in the order of the output.
struct PieceLines {
  std::vector<std::uint32_t> lines;   // entry of the seed << direction_bits | direction
  std::vector<std::uint32_t> output;  // which line is next in the output
  std::uint64_t seeds_outside = 0;
  std::uint64_t seeds_without_direction = 0;
};

class PagedTracker final : public Tracker {
 public:
  PagedTracker(Device& device, std::unique_ptr<PagedKernels> kernels, const PagedTrackerOptions& options)
      : device_(device), kernels_(std::move(kernels)), options_(options) {}

  [[nodiscard]] std::string name() const override { return device_.id(); }
  [[nodiscard]] TrackerHints hints() const override {
    TrackerHints hints = options_.hints;
    if (field_) hints.callers = field_->callers();
    return hints;
  }

  [[nodiscard]] Status supports(const TrackingPlan& plan, const Field& field) const override {
    return check_plan_and_field(plan, field);
  }

  [[nodiscard]] Status prepare(const TrackingPlan& plan, const Field& field, const Seeds& seeds,
                               const GivenDirections* directions) override {
    return catch_out_of_memory([&]() -> Status {
      give_up_memory();
      CGL_TRY(check_given_directions(directions, seeds));
      CGL_TRY_ASSIGN(const DeviceTables tables, make_device_tables(plan, field));
      CGL_TRY(settle(plan, field, tables));
      seeds_ = &seeds;
      directions_ = directions;
      kernel_nanoseconds_ = 0;
      return {};
    });
  }

  [[nodiscard]] Result<std::unique_ptr<Tracker>> beside(const TrackingPlan& plan, const Seeds& seeds,
                                                        const GivenDirections* directions) override {
    return catch_out_of_memory([&]() -> Result<std::unique_ptr<Tracker>> {
      if (field_ == nullptr) return fail(ErrorKind::invalid_state, "device {}: another plan before prepare", name());
      CGL_TRY(check_plan_and_field(plan, field_->field()));
      CGL_TRY(check_given_directions(directions, seeds));
      auto other = std::make_unique<PagedTracker>(device_, kernels_->for_another_plan(), options_);
      CGL_TRY(other->prepare_on(field_, plan, nullptr));
      other->seeds_ = &seeds;
      other->directions_ = directions;
      return other;
    });
  }

  [[nodiscard]] double kernel_seconds() const override {
    return 1e-9 * static_cast<double>(kernel_nanoseconds_.load());
  }

  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    return catch_out_of_memory([&]() -> Status {
      CGL_TRY(check_seed_range(range, seeds_));
      CGL_TRY_ASSIGN(std::unique_ptr<Caller> caller, field_->take_caller());
      batch.seeds = range;
      batch.offsets.assign(1, 0);
      batch.points.clear();
      batch.seed_index.clear();
      batch.seed_point.clear();
      batch.end_reason.clear();
      batch.steps = 0;
      batch.seeds_outside = 0;
      batch.seeds_without_direction = 0;
      std::uint64_t done = 0;
      caller->cancel = cancel;
      Status outcome = track_pieces(*caller, range, done, batch);
      if (!outcome && outcome.error().kind() == ErrorKind::out_of_memory && !caller->is_reserve) {
        // Memory did not suffice for a single seed: what this lane has goes back, and the other seeds are tracked with
        // the reserve.
        static_cast<void>(caller->queue->synchronise());
        caller = field_->swap_for_reserve(std::move(caller));
        caller->cancel = cancel;
        outcome = track_pieces(*caller, range, done, batch);
      }
      // Nothing may be under way in memory that the next call uses.
      if (!outcome) static_cast<void>(caller->queue->synchronise());
      field_->give_back(std::move(caller));
      return outcome;
    });
  }

 private:
  [[nodiscard]] const FieldBricks& bricks() const { return field_->bricks(); }

  template <class T>
  Status send(Caller& caller, GrowingBuffer& growing, std::span<const T> values) {
    CGL_TRY(growing.reserve(device_, values.size_bytes(), caller.is_reserve));
    return upload(*caller.queue, growing.buffer(), values);
  }

  // Everything that goes to the device, whole or in bricks, and a lane that can track a seed whatever comes. What does
  // not fit is refused here, and nothing is kept.
  Status settle(const TrackingPlan& plan, const Field& field, const DeviceTables& tables) {
    const std::uint64_t voxel_bytes = field.record_of_voxel.size() * sizeof(std::uint32_t);
    const auto need_of = [&](std::uint64_t field_bytes, bool in_bricks) {
      return MemoryNeed{.field_bytes = field_bytes,
                        .tables_bytes = tables.words.size() * sizeof(std::uint32_t) + voxel_bytes,
                        .working_bytes = LaneSizes(plan, options_.part_points, in_bricks).bytes()};
    };
    const FieldFit fit{.whole = need_of(field.stored_bytes().size(), false),
                       .besides_bricks = need_of(0, true).total_bytes(),
                       .planes_in_reach = planes_in_reach(plan)};
    const auto attempt = [&](FieldBricks bricks) -> Status {
      auto on_device = std::make_shared<PagedField>(device_, options_);
      CGL_TRY(on_device->bring(field, std::move(bricks), fit.planes_in_reach));
      return prepare_on(std::move(on_device), plan, &tables);
    };
    return fit_field(device_, field, fit, attempt, [&] { give_up_memory(); });
  }

  Status prepare_on(std::shared_ptr<PagedField> field, const TrackingPlan& plan, const DeviceTables* made) {
    CGL_TRY_ASSIGN(input_, field->input_for(plan, made, tables_));
    CGL_TRY(kernels_->configure(input_, !field->bricks().empty()));
    CGL_TRY(field->have_reserve_for(plan));
    field_ = std::move(field);
    return {};
  }

  void give_up_memory() {
    seeds_ = nullptr;
    kernels_->give_up_memory();
    tables_.reset();
    field_.reset();
  }

  // Tracks a range in pieces; one for which memory does not suffice is halved. The first `done` seeds are in the batch.
  Status track_pieces(Caller& caller, SeedRange range, std::uint64_t& done, StreamlineBatch& batch) {
    std::uint64_t piece = std::min(range.count, options_.most_piece_seeds);
    while (done < range.count) {
      CGL_TRY(caller.cancel.check());
      const std::uint64_t count = std::min(piece, range.count - done);
      Status outcome = track_piece(caller, {range.first + done, count}, batch);
      if (!outcome && outcome.error().kind() == ErrorKind::out_of_memory && count > 1) {
        CGL_TRY(caller.queue->synchronise());
        piece = (count + 1) / 2;
        continue;
      }
      CGL_TRY(std::move(outcome));
      done += count;
    }
    return {};
  }

  // Appends to the batch, or leaves it as it was.
  Status track_piece(Caller& caller, SeedRange range, StreamlineBatch& batch) {
    const auto count = static_cast<std::size_t>(range.count);
    std::vector<numerics::Vec3> positions(count);
    seeds_->fill(range.first, positions);
    std::vector<std::uint32_t> order = order_in_space(positions);
    if (!bricks().empty()) sort_by_brick(bricks(), positions, order);
    kernel::PagedWork work{};
    CGL_TRY(send_seeds(caller, range, positions, order, work));
    if (bricks().empty()) {
      CGL_TRY(kernels_->find_directions(*caller.queue, caller.number, work));
    } else {
      CGL_TRY(find_directions_in_bricks(caller, positions, order, work));
    }
    CGL_TRY(caller.down.reserve(device_, count * sizeof(InitialDirections)));
    const std::span<InitialDirections> initial = caller.down.as<InitialDirections>(count);
    CGL_TRY(download(*caller.queue, initial, caller.initial.buffer()));
    CGL_TRY(caller.queue->synchronise());
    if (directions_ != nullptr) CGL_TRY(send_given_directions(caller, range, order, initial, work));
    const PieceLines lines = list_lines(order, initial);
    std::span<const kernel::HalfRecord> halves;
    if (!lines.lines.empty()) {
      CGL_TRY(send_lines(caller, lines, work));
      if (bricks().empty()) {
        CGL_TRY_ASSIGN(halves, track_halves(caller, work, lines.lines.size()));
      } else {
        CGL_TRY_ASSIGN(halves, track_halves_in_bricks(caller, positions, order, lines, work));
      }
    }
    return bring_back(caller, range, order, lines, halves, work, batch);
  }

  Status send_seeds(Caller& caller, SeedRange range, std::span<const numerics::Vec3> positions,
                    std::span<const std::uint32_t> order, kernel::PagedWork& work) {
    const std::size_t count = positions.size();
    CGL_TRY(caller.up.reserve(device_, count * (sizeof(numerics::Vec3) + sizeof(std::uint32_t))));
    const auto sorted = caller.up.as<numerics::Vec3>(count);
    const auto index = caller.up.as<std::uint32_t>(count, count * sizeof(numerics::Vec3));
    for (std::size_t i = 0; i < count; ++i) {
      sorted[i] = positions[order[i]];
      index[i] = static_cast<std::uint32_t>(range.first + order[i]);
    }
    const std::uint32_t stride = std::min(input_.plan.max_directions, most_initial_directions);
    CGL_TRY(send(caller, caller.positions, std::span<const numerics::Vec3>(sorted)));
    CGL_TRY(send(caller, caller.index, std::span<const std::uint32_t>(index)));
    CGL_TRY(caller.directions.reserve(device_, count * stride * sizeof(numerics::Vec3), caller.is_reserve));
    CGL_TRY(caller.initial.reserve(device_, count * sizeof(InitialDirections), caller.is_reserve));
    CGL_TRY(caller.queue->fill(caller.counters.buffer(), 0, counter_bytes, std::byte{0}));
    work.seeds = {.positions = caller.positions.as<const float>(),
                  .index = caller.index.as<const std::uint32_t>(),
                  .directions = caller.directions.as<float>(),
                  .initial = caller.initial.as<InitialDirections>(),
                  .queue = caller.counters.as<std::uint32_t>(),
                  .count = static_cast<std::uint32_t>(count),
                  .stride = stride};
    return {};
  }

  // The user's directions in the place of those that were found, one for each seed that may start.
  Status send_given_directions(Caller& caller, SeedRange range, std::span<const std::uint32_t> order,
                               std::span<InitialDirections> initial, kernel::PagedWork& work) {
    CGL_TRY(caller.up.reserve(device_, order.size() * sizeof(numerics::Vec3)));
    const auto given = caller.up.as<numerics::Vec3>(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      given[i] = directions_->directions[static_cast<std::size_t>(range.first) + order[i]];
      initial[i].count = 1;
    }
    work.seeds.stride = 1;
    CGL_TRY(send(caller, caller.directions, std::span<const numerics::Vec3>(given)));
    CGL_TRY(caller.queue->synchronise());
    work.seeds.directions = caller.directions.as<float>();
    return {};
  }

  static PieceLines list_lines(std::span<const std::uint32_t> order, std::span<const InitialDirections> initial) {
    PieceLines result;
    std::vector<std::uint32_t> entry_of_seed(order.size()), first_line(order.size());
    for (std::uint32_t entry = 0; entry < order.size(); ++entry) {
      entry_of_seed[order[entry]] = entry;
      first_line[entry] = static_cast<std::uint32_t>(result.lines.size());
      if (initial[entry].seed_reason != 0u) {
        ++result.seeds_outside;
        continue;
      }
      if (initial[entry].count == 0u) ++result.seeds_without_direction;
      for (std::uint32_t d = 0; d < initial[entry].count; ++d) {
        result.lines.push_back((entry << kernel::direction_bits) | d);
      }
    }
    result.output.reserve(result.lines.size());
    for (const std::uint32_t entry : entry_of_seed) {
      const std::uint32_t count = initial[entry].seed_reason != 0u ? 0u : initial[entry].count;
      for (std::uint32_t d = 0; d < count; ++d) result.output.push_back(first_line[entry] + d);
    }
    return result;
  }

  Status send_lines(Caller& caller, const PieceLines& lines, kernel::PagedWork& work) {
    const std::size_t count = lines.lines.size();
    CGL_TRY(caller.up.reserve(device_, count * sizeof(std::uint32_t)));
    const auto staged = caller.up.as<std::uint32_t>(count);
    std::copy(lines.lines.begin(), lines.lines.end(), staged.begin());
    CGL_TRY(send(caller, caller.lines, std::span<const std::uint32_t>(staged)));
    CGL_TRY(caller.halves.reserve(device_, 2 * count * sizeof(kernel::HalfRecord), caller.is_reserve));
    CGL_TRY(caller.queue->fill(caller.halves.buffer(), 0, 2 * count * sizeof(kernel::HalfRecord), std::byte{0xff}));
    CGL_TRY(caller.queue->fill(caller.counters.buffer(), 0, counter_bytes, std::byte{0}));
    work.halves = {.lines = caller.lines.as<const std::uint32_t>(),
                   .half_numbers = nullptr,
                   .halves = caller.halves.as<kernel::HalfRecord>(),
                   .queue = caller.counters.as<std::uint32_t>(),
                   .count = static_cast<std::uint32_t>(input_.plan.one_sided != 0u ? count : 2 * count)};
    // A guess of three pages to a half; what was needed before is there still.
    constexpr std::uint64_t guess = 3;
    const std::uint64_t pages = options_.first_pages > 0 ? options_.first_pages : guess * work.halves.count;
    if (caller.page_capacity != pages) {
      caller.page_capacity = 0;
      CGL_TRY(caller.pages.reserve(device_, pages * page_bytes, caller.is_reserve));
      CGL_TRY(caller.next.reserve(device_, pages * sizeof(std::uint32_t), caller.is_reserve));
      // The number of pages that a test asks for is a limit, too.
      caller.page_capacity = static_cast<std::uint32_t>(
          options_.first_pages > 0 ? std::min(options_.first_pages, caller.pages_there()) : caller.pages_there());
    }
    work.store = store_of(caller);
    if (!bricks().empty()) {
      const std::uint64_t bytes = 2 * count * sizeof(kernel::PausedHalf);
      CGL_TRY(caller.paused.reserve(device_, bytes, caller.is_reserve));
      CGL_TRY(caller.queue->fill(caller.paused.buffer(), 0, bytes, std::byte{0}));
      work.brick.paused = caller.paused.as<kernel::PausedHalf>();
    }
    return {};
  }

  static kernel::PageStore store_of(const Caller& caller) {
    return {.pages = caller.pages.as<float>(),
            .next = caller.next.as<std::uint32_t>(),
            .used = caller.counters.as<std::uint32_t>(pages_counter_offset),
            .capacity = caller.page_capacity};
  }

  // Tracks the halves of a piece until all are finished. The records stay in the lane's host memory.
  Result<std::span<const kernel::HalfRecord>> track_halves(Caller& caller, kernel::PagedWork& work, std::size_t lines) {
    for (;;) {
      CGL_TRY_ASSIGN(const std::span<const kernel::HalfRecord> halves, run_halves(caller, work, lines));
      std::vector<std::uint32_t> unfinished;
      const std::size_t every = input_.plan.one_sided != 0u ? 2 : 1;
      for (std::size_t half_number = 0; half_number < halves.size(); half_number += every) {
        if (halves[half_number].reason == kernel::unfinished_half)
          unfinished.push_back(static_cast<std::uint32_t>(half_number));
      }
      if (unfinished.empty()) return halves;
      CGL_TRY(add_pages(caller, unfinished.size()));
      work.store = store_of(caller);
      CGL_TRY(send_half_numbers(caller, unfinished, work));
    }
  }

  // One launch; what is known of all halves after it.
  Result<std::span<const kernel::HalfRecord>> run_halves(Caller& caller, const kernel::PagedWork& work,
                                                         std::size_t lines) {
    CGL_TRY_ASSIGN(const auto begin, caller.queue->record());
    CGL_TRY(kernels_->track(*caller.queue, caller.number, work));
    CGL_TRY_ASSIGN(const auto end, caller.queue->record());
    CGL_TRY(caller.down.reserve(device_, 2 * lines * sizeof(kernel::HalfRecord)));
    const std::span<kernel::HalfRecord> halves = caller.down.as<kernel::HalfRecord>(2 * lines);
    CGL_TRY(download(*caller.queue, halves, caller.halves.buffer()));
    CGL_TRY(caller.queue->synchronise());
    CGL_TRY_ASSIGN(const double milliseconds, end->milliseconds_since(*begin));
    kernel_nanoseconds_ += static_cast<std::uint64_t>(1e6 * milliseconds);
    CGL_TRY(caller.cancel.check());
    return halves;
  }

  // Which halves are next.
  Status send_half_numbers(Caller& caller, std::span<const std::uint32_t> half_numbers, kernel::PagedWork& work) {
    CGL_TRY(send(caller, caller.half_numbers, half_numbers));
    CGL_TRY(caller.queue->fill(caller.counters.buffer(), 0, sizeof(std::uint32_t), std::byte{0}));
    CGL_TRY(caller.queue->synchronise());
    work.halves.half_numbers = caller.half_numbers.as<const std::uint32_t>();
    work.halves.count = static_cast<std::uint32_t>(half_numbers.size());
    return {};
  }

  Status find_directions_in_bricks(Caller& caller, std::span<const numerics::Vec3> positions,
                                   std::span<const std::uint32_t> order, const kernel::PagedWork& work) {
    for (std::size_t first = 0; first < order.size();) {
      const std::uint32_t brick = bricks().brick_at(positions[order[first]].z);
      std::size_t end = first + 1;
      while (end < order.size() && bricks().brick_at(positions[order[end]].z) == brick) ++end;
      kernel::PagedWork part = work;
      CGL_TRY(field_->load_brick(caller, brick, part));
      part.seeds.positions += 3 * first;
      part.seeds.index += first;
      part.seeds.directions += 3 * std::size_t{part.seeds.stride} * first;
      part.seeds.initial += first;
      part.seeds.count = static_cast<std::uint32_t>(end - first);
      CGL_TRY(caller.queue->fill(caller.counters.buffer(), 0, sizeof(std::uint32_t), std::byte{0}));
      CGL_TRY(kernels_->find_directions(*caller.queue, caller.number, part));
      CGL_TRY(caller.queue->synchronise());
      first = end;
    }
    return {};
  }

  // The brick for which most halves wait is next, until all have ended.
  Result<std::span<const kernel::HalfRecord>> track_halves_in_bricks(Caller& caller,
                                                                     std::span<const numerics::Vec3> positions,
                                                                     std::span<const std::uint32_t> order,
                                                                     const PieceLines& lines, kernel::PagedWork& work) {
    const auto z_of_seed = [&](std::uint32_t half_number) {
      return positions[order[lines.lines[half_number / 2] >> kernel::direction_bits]].z;
    };
    BrickWaits waits(bricks());
    const std::uint32_t every = input_.plan.one_sided != 0u ? 2 : 1;
    for (std::uint32_t half_number = 0; half_number < 2 * lines.lines.size(); half_number += every) {
      waits.add(z_of_seed(half_number), half_number);
    }
    std::span<const kernel::HalfRecord> halves;
    for (;;) {
      const std::optional<std::uint32_t> wanted = waits.most_wanted();
      if (!wanted) return halves;
      const std::uint32_t brick = *wanted;
      const std::vector<std::uint32_t> half_numbers = waits.take(brick);
      CGL_TRY(field_->load_brick(caller, brick, work));
      CGL_TRY(send_half_numbers(caller, half_numbers, work));
      CGL_TRY_ASSIGN(halves, run_halves(caller, work, lines.lines.size()));
      std::size_t without_page = 0, ended = 0, left = 0;
      for (const std::uint32_t half_number : half_numbers) {
        const kernel::HalfRecord& half = halves[half_number];
        if (half.reason == kernel::unfinished_half) {
          ++without_page;
          waits.add(z_of_seed(half_number), half_number);
        } else if (half.reason == kernel::paused_half) {
          if (waits.add(std::bit_cast<float>(half.points), half_number) != brick) ++left;
        } else {
          ++ended;
        }
      }
      if (without_page > 0) {
        CGL_TRY(add_pages(caller, without_page));
        work.store = store_of(caller);
      } else if (ended + left == 0) {
        return tl::make_unexpected(stuck_in_brick(device_.id()));
      }
    }
  }

  // Allocates more pages; those that are written stay.
  Status add_pages(Caller& caller, std::size_t unfinished) {
    const std::uint64_t old = caller.page_capacity;
    // What is there already costs nothing.
    const std::uint64_t pages =
        caller.pages_there() > old
            ? caller.pages_there()
            : std::min<std::uint64_t>(std::max<std::uint64_t>(2 * old, old + 3 * unfinished), kernel::no_page);
    if (pages == old) {
      return fail(ErrorKind::out_of_memory, "device {}: more than {} pages of points in one piece", device_.id(), old);
    }
    // Both are there before either is given up.
    CGL_TRY(caller.next.grow(*caller.queue, pages * sizeof(std::uint32_t), old * sizeof(std::uint32_t)));
    CGL_TRY(caller.pages.grow(*caller.queue, pages * page_bytes, old * page_bytes));
    const std::array<std::uint32_t, 1> used = {static_cast<std::uint32_t>(old)};
    CGL_TRY(
        upload(*caller.queue, caller.counters.buffer(), std::span<const std::uint32_t>(used), pages_counter_offset));
    CGL_TRY(caller.queue->synchronise());
    caller.page_capacity = static_cast<std::uint32_t>(pages);
    return {};
  }

  Status bring_back(Caller& caller, SeedRange range, std::span<const std::uint32_t> order, const PieceLines& lines,
                    std::span<const kernel::HalfRecord> halves, kernel::PagedWork& work, StreamlineBatch& batch) {
    const std::size_t count = lines.output.size();
    const std::size_t before = batch.streamline_count();
    const bool one_sided = input_.plan.one_sided != 0u;
    // Offsets first, in parts; nothing of the batch changes until memory for all of it is there.
    std::vector<std::size_t> part_begins = {0};
    std::vector<std::uint64_t> offsets(count + 1);
    std::uint64_t steps = 0, largest_part = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t line = lines.output[i];
      const std::uint64_t against = one_sided ? 0 : halves[2 * line + 1].points;
      offsets[i + 1] = offsets[i] + against + 1 + halves[2 * line].points;
      steps += halves[2 * line].steps + (one_sided ? 0 : halves[2 * line + 1].steps);
      if (offsets[i + 1] - offsets[part_begins.back()] > options_.part_points && i > part_begins.back()) {
        part_begins.push_back(i);
      }
      largest_part = std::max(largest_part, offsets[i + 1] - offsets[part_begins.back()]);
    }
    part_begins.push_back(count);
    const std::size_t first_point = batch.points.size();
    // Room without zeros: the parts are appended as they arrive. With some to spare: ranges are alike, but not equal,
    // and new memory for a slightly longer one costs more than what is in it.
    const std::size_t needed = first_point + 3 * static_cast<std::size_t>(offsets[count]);
    if (batch.points.capacity() < needed) {
      reserve_in_large_pages(batch.points,
                             std::max(needed + needed / 8, first_point == 0 ? 0 : 2 * batch.points.capacity()));
    }
    if (count > 0) {
      Status outcome = copy_parts(caller, lines, offsets, part_begins, largest_part, work, batch.points);
      if (!outcome) {
        batch.points.resize(first_point);
        return outcome;
      }
    }
    batch.offsets.reserve(before + count + 1);
    batch.seed_index.reserve(before + count);
    batch.seed_point.reserve(before + count);
    batch.end_reason.reserve(2 * (before + count));
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t line = lines.output[i];
      const std::uint32_t entry = lines.lines[line] >> kernel::direction_bits;
      batch.offsets.push_back(first_point / 3 + offsets[i + 1]);
      batch.seed_index.push_back(range.first + order[entry]);
      batch.seed_point.push_back(one_sided ? 0 : halves[2 * line + 1].points);
      batch.end_reason.push_back(one_sided ? static_cast<std::uint8_t>(EndReason::none)
                                           : static_cast<std::uint8_t>(halves[2 * line + 1].reason));
      batch.end_reason.push_back(static_cast<std::uint8_t>(halves[2 * line].reason));
    }
    batch.steps += steps;
    batch.seeds_outside += lines.seeds_outside;
    batch.seeds_without_direction += lines.seeds_without_direction;
    return {};
  }

  // Appends to `points`, which has room. While one part comes from the device, the one before is appended.
  Status copy_parts(Caller& caller, const PieceLines& lines, std::span<const std::uint64_t> offsets,
                    std::span<const std::size_t> part_begins, std::uint64_t largest_part, kernel::PagedWork& work,
                    MappedVector<float>& points) {
    const std::size_t count = lines.output.size();
    CGL_TRY(caller.up.reserve(device_, 2 * count * sizeof(std::uint32_t)));
    const auto line = caller.up.as<std::uint32_t>(count);
    const auto offset = caller.up.as<std::uint32_t>(count, count * sizeof(std::uint32_t));
    std::copy(lines.output.begin(), lines.output.end(), line.begin());
    for (std::size_t part = 0; part + 1 < part_begins.size(); ++part) {
      for (std::size_t i = part_begins[part]; i < part_begins[part + 1]; ++i) {
        offset[i] = static_cast<std::uint32_t>(offsets[i] - offsets[part_begins[part]]);
      }
    }
    CGL_TRY(send(caller, caller.output_line, std::span<const std::uint32_t>(line)));
    CGL_TRY(send(caller, caller.output_offset, std::span<const std::uint32_t>(offset)));
    const std::uint64_t part_bytes = 3 * sizeof(float) * largest_part;
    for (std::size_t i = 0; i < std::min<std::size_t>(part_begins.size() - 1, 2); ++i) {
      CGL_TRY(caller.parts[i].reserve(device_, part_bytes, caller.is_reserve));
      CGL_TRY(caller.parts_down[i].reserve(device_, part_bytes));
    }
    std::unique_ptr<Event> arrived;
    std::span<const float> waiting;
    for (std::size_t part = 0; part + 1 < part_begins.size(); ++part) {
      const std::size_t begin = part_begins[part], end = part_begins[part + 1];
      const GrowingBuffer& growing = caller.parts[part % 2];
      work.output = {.line = caller.output_line.as<const std::uint32_t>() + begin,
                     .offset = caller.output_offset.as<const std::uint32_t>() + begin,
                     .points = growing.as<float>(),
                     .count = static_cast<std::uint32_t>(end - begin)};
      CGL_TRY(kernels_->compact(*caller.queue, work));
      const std::span<float> from =
          caller.parts_down[part % 2].as<float>(static_cast<std::size_t>(3 * (offsets[end] - offsets[begin])));
      CGL_TRY(download(*caller.queue, from, growing.buffer()));
      CGL_TRY_ASSIGN(auto event, caller.queue->record());
      if (arrived) CGL_TRY(take_part(*arrived, waiting, points));
      arrived = std::move(event);
      waiting = from;
    }
    return take_part(*arrived, waiting, points);
  }

  static Status take_part(Event& arrived, std::span<const float> from, MappedVector<float>& points) {
    CGL_TRY(arrived.wait());
    const std::size_t before = points.size();
    points.resize(before + from.size());
    std::copy(from.begin(), from.end(), points.data() + before);
    return {};
  }

  Device& device_;
  std::unique_ptr<PagedKernels> kernels_;
  const PagedTrackerOptions options_;
  const std::shared_ptr<WorkingMemory> memory_ = WorkingMemory::of(device_);
  std::shared_ptr<PagedField> field_;  // null before prepare
  std::shared_ptr<const TablesOnDevice> tables_;
  TrackingInput input_{};
  const Seeds* seeds_ = nullptr;
  const GivenDirections* directions_ = nullptr;
  std::atomic<std::uint64_t> kernel_nanoseconds_ = 0;
};

}  // namespace

std::unique_ptr<Tracker> make_paged_tracker(Device& device, std::unique_ptr<PagedKernels> kernels,
                                            const PagedTrackerOptions& options) {
  return std::make_unique<PagedTracker>(device, std::move(kernels), options);
}

}  // namespace cingulum
