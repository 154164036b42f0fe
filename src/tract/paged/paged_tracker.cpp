#include "tract/paged/paged_tracker.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/field/brick_turns.hpp"
#include "tract/field/field_bricks.hpp"
#include "tract/field/field_fit.hpp"
#include "tract/paged/device_tables.hpp"
#include "tract/paged/paged_memory.hpp"
#include "tract/seeds/seed_order.hpp"

namespace cingulum {
namespace {

// The lines of a piece: in the order of work, which is that of places, and in the order of the output.
struct PieceLines {
  std::vector<std::uint32_t> lines;   // seed slot << direction_bits | direction
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
    hints.callers = callers();
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

  [[nodiscard]] double kernel_seconds() const override {
    return 1e-9 * static_cast<double>(kernel_nanoseconds_.load());
  }

  [[nodiscard]] Status track(SeedRange range, StreamlineBatch& batch, const CancelToken& cancel) override {
    return catch_out_of_memory([&]() -> Status {
      CGL_TRY(check_seed_range(range, seeds_));
      CGL_TRY_ASSIGN(std::unique_ptr<Lane> lane, take_lane());
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
      lane->cancel = cancel;
      Status outcome = track_pieces(*lane, range, done, batch);
      if (!outcome && outcome.error().kind() == ErrorKind::out_of_memory && !lane->is_reserve) {
        // Not even a single seed: what this lane has goes back, and the rest is tracked with the reserve.
        static_cast<void>(lane->queue->synchronise());
        lane = swap_for_reserve(std::move(lane));
        lane->cancel = cancel;
        outcome = track_pieces(*lane, range, done, batch);
      }
      // Nothing may be under way in memory that the next call uses.
      if (!outcome) static_cast<void>(lane->queue->synchronise());
      give_back(std::move(lane));
      return outcome;
    });
  }

 private:
  template <class T>
  Status send(Queue& queue, Room& room, std::span<const T> values) {
    CGL_TRY(room.reserve(device_, values.size_bytes()));
    return upload(queue, room.buffer(), values);
  }
  template <class T>
  Status send(Lane& lane, Room& room, std::span<const T> values) {
    CGL_TRY(room.reserve(device_, values.size_bytes(), lane.is_reserve));
    return upload(*lane.queue, room.buffer(), values);
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
    return fit_field(
        device_, field, fit, [&](FieldBricks bricks) { return upload_all(plan, field, tables, std::move(bricks)); },
        [&] { give_up_memory(); });
  }

  Status upload_all(const TrackingPlan& plan, const Field& field, const DeviceTables& tables, FieldBricks bricks) {
    CGL_TRY_ASSIGN(const auto queue, device_.create_queue());
    field_ = &field;
    bricks_ = std::move(bricks);
    resident_brick_.forget();
    CGL_TRY(send(*queue, tables_, std::span<const std::uint32_t>(tables.words)));
    if (bricks_.empty()) {
      CGL_TRY(send(*queue, record_of_voxel_, std::span<const std::uint32_t>(field.record_of_voxel)));
      CGL_TRY(send(*queue, records_, field.stored_bytes()));
    } else {
      CGL_TRY(record_of_voxel_.reserve(device_, field.record_of_voxel.size() * sizeof(std::uint32_t)));
      CGL_TRY(records_.reserve(device_, bricks_.largest_bytes()));
      // Whole rows are read beyond the last record of a brick.
      CGL_TRY(queue->fill(records_.buffer(), 0, records_.buffer().bytes(), std::byte{0}));
      log_info("device {}: the field of {} is tracked in {} bricks of up to {}", device_.id(),
               format_bytes(field.stored_bytes().size()), bricks_.size(), format_bytes(bricks_.largest_bytes()));
    }
    CGL_TRY(queue->synchronise());
    input_ = with_pointers(tables, tables_.as<const std::uint32_t>(), record_of_voxel_.as<const std::uint32_t>(),
                           records_.as<const void>());
    CGL_TRY(kernels_->configure(input_, !bricks_.empty()));
    CGL_TRY_ASSIGN(std::unique_ptr<Lane> reserve, make_lane(0));
    reserve->is_reserve = true;
    CGL_TRY(LaneSizes(plan, options_.part_points, !bricks_.empty()).reserve(device_, *reserve));
    const std::lock_guard lock(mutex_);
    for (std::uint32_t slot = callers(); slot-- > 1;) free_slots_.push_back(slot);
    lanes_.push_back(std::move(reserve));
    return {};
  }

  void give_up_memory() {
    seeds_ = nullptr;
    lanes_.clear();
    free_slots_.clear();
    kernels_->give_up_memory();
    tables_.release();
    record_of_voxel_.release();
    records_.release();
  }

  // Bricks come and go for all: one caller at a time.
  [[nodiscard]] std::uint32_t callers() const { return bricks_.empty() ? std::max(options_.hints.callers, 1u) : 1u; }

  Result<std::unique_ptr<Lane>> make_lane(std::uint32_t slot) {
    auto lane = std::make_unique<Lane>();
    lane->slot = slot;
    CGL_TRY_ASSIGN(lane->queue, device_.create_queue());
    CGL_TRY(lane->counters.reserve(device_, counter_bytes));
    return lane;
  }

  // Waits while as many work as may; where there is no memory for another lane, until one is free.
  Result<std::unique_ptr<Lane>> take_lane() {
    std::unique_lock lock(mutex_);
    bool may_make = true;
    for (;;) {
      lane_is_free_.wait(lock, [&] { return !lanes_.empty() || (may_make && !free_slots_.empty()); });
      if (!lanes_.empty()) {
        std::unique_ptr<Lane> lane = std::move(lanes_.back());
        lanes_.pop_back();
        return lane;
      }
      const std::uint32_t slot = free_slots_.back();
      free_slots_.pop_back();
      lock.unlock();
      auto lane = make_lane(slot);
      if (lane) return lane;
      lock.lock();
      free_slots_.push_back(slot);
      lane_is_free_.notify_all();
      if (lane.error().kind() != ErrorKind::out_of_memory) return lane;
      may_make = false;
    }
  }

  void give_back(std::unique_ptr<Lane> lane) {
    {
      const std::lock_guard lock(mutex_);
      lanes_.push_back(std::move(lane));
    }
    lane_is_free_.notify_all();
  }

  std::unique_ptr<Lane> swap_for_reserve(std::unique_ptr<Lane> lane) {
    const std::uint32_t slot = lane->slot;
    lane.reset();
    std::unique_lock lock(mutex_);
    free_slots_.push_back(slot);
    lane_is_free_.notify_all();
    std::unique_ptr<Lane> reserve;
    lane_is_free_.wait(lock, [&] {
      for (auto& other : lanes_) {
        if (!other->is_reserve) continue;
        reserve = std::move(other);
        std::swap(other, lanes_.back());
        lanes_.pop_back();
        break;
      }
      return reserve != nullptr;
    });
    return reserve;
  }

  // In pieces; one for which memory does not suffice is halved. The first `done` seeds are in the batch.
  Status track_pieces(Lane& lane, SeedRange range, std::uint64_t& done, StreamlineBatch& batch) {
    std::uint64_t piece = std::min(range.count, options_.most_piece_seeds);
    while (done < range.count) {
      CGL_TRY(lane.cancel.check());
      const std::uint64_t count = std::min(piece, range.count - done);
      Status outcome = track_piece(lane, {range.first + done, count}, batch);
      if (!outcome && outcome.error().kind() == ErrorKind::out_of_memory && count > 1) {
        CGL_TRY(lane.queue->synchronise());
        piece = (count + 1) / 2;
        continue;
      }
      CGL_TRY(std::move(outcome));
      done += count;
    }
    return {};
  }

  // Appends to the batch, or leaves it as it was.
  Status track_piece(Lane& lane, SeedRange range, StreamlineBatch& batch) {
    const auto count = static_cast<std::size_t>(range.count);
    std::vector<numerics::Vec3> positions(count);
    seeds_->fill(range.first, positions);
    std::vector<std::uint32_t> order = order_in_space(positions);
    if (!bricks_.empty()) sort_by_brick(bricks_, positions, order);
    kernel::PagedWork work{};
    CGL_TRY(send_seeds(lane, range, positions, order, work));
    if (bricks_.empty()) {
      CGL_TRY(kernels_->find_directions(*lane.queue, lane.slot, work));
    } else {
      CGL_TRY(find_directions_in_bricks(lane, positions, order, work));
    }
    CGL_TRY(lane.down.reserve(device_, count * sizeof(InitialDirections)));
    const std::span<InitialDirections> initial = lane.down.as<InitialDirections>(count);
    CGL_TRY(download(*lane.queue, initial, lane.initial.buffer()));
    CGL_TRY(lane.queue->synchronise());
    if (directions_ != nullptr) CGL_TRY(send_given_directions(lane, range, order, initial, work));
    const PieceLines lines = list_lines(order, initial);
    std::span<const kernel::HalfRecord> halves;
    if (!lines.lines.empty()) {
      CGL_TRY(send_lines(lane, lines, work));
      if (bricks_.empty()) {
        CGL_TRY_ASSIGN(halves, track_halves(lane, work, lines.lines.size()));
      } else {
        CGL_TRY_ASSIGN(halves, track_halves_in_bricks(lane, positions, order, lines, work));
      }
    }
    return bring_back(lane, range, order, lines, halves, work, batch);
  }

  Status send_seeds(Lane& lane, SeedRange range, std::span<const numerics::Vec3> positions,
                    std::span<const std::uint32_t> order, kernel::PagedWork& work) {
    const std::size_t count = positions.size();
    CGL_TRY(lane.up.reserve(device_, count * (sizeof(numerics::Vec3) + sizeof(std::uint32_t))));
    const auto sorted = lane.up.as<numerics::Vec3>(count);
    const auto index = lane.up.as<std::uint32_t>(count, count * sizeof(numerics::Vec3));
    for (std::size_t i = 0; i < count; ++i) {
      sorted[i] = positions[order[i]];
      index[i] = static_cast<std::uint32_t>(range.first + order[i]);
    }
    const std::uint32_t stride = std::min(input_.plan.max_directions, most_initial_directions);
    CGL_TRY(send(lane, lane.positions, std::span<const numerics::Vec3>(sorted)));
    CGL_TRY(send(lane, lane.index, std::span<const std::uint32_t>(index)));
    CGL_TRY(lane.directions.reserve(device_, count * stride * sizeof(numerics::Vec3), lane.is_reserve));
    CGL_TRY(lane.initial.reserve(device_, count * sizeof(InitialDirections), lane.is_reserve));
    CGL_TRY(lane.queue->fill(lane.counters.buffer(), 0, counter_bytes, std::byte{0}));
    work.seeds = {.positions = lane.positions.as<const float>(),
                  .index = lane.index.as<const std::uint32_t>(),
                  .directions = lane.directions.as<float>(),
                  .initial = lane.initial.as<InitialDirections>(),
                  .queue = lane.counters.as<std::uint32_t>(),
                  .count = static_cast<std::uint32_t>(count),
                  .stride = stride};
    return {};
  }

  // The user's directions in the place of those that were found, one for each seed that may start.
  Status send_given_directions(Lane& lane, SeedRange range, std::span<const std::uint32_t> order,
                               std::span<InitialDirections> initial, kernel::PagedWork& work) {
    CGL_TRY(lane.up.reserve(device_, order.size() * sizeof(numerics::Vec3)));
    const auto given = lane.up.as<numerics::Vec3>(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      given[i] = directions_->directions[static_cast<std::size_t>(range.first) + order[i]];
      initial[i].count = 1;
    }
    work.seeds.stride = 1;
    CGL_TRY(send(lane, lane.directions, std::span<const numerics::Vec3>(given)));
    CGL_TRY(lane.queue->synchronise());
    work.seeds.directions = lane.directions.as<float>();
    return {};
  }

  static PieceLines list_lines(std::span<const std::uint32_t> order, std::span<const InitialDirections> initial) {
    PieceLines result;
    std::vector<std::uint32_t> slot_of_seed(order.size()), first_line(order.size());
    for (std::uint32_t slot = 0; slot < order.size(); ++slot) {
      slot_of_seed[order[slot]] = slot;
      first_line[slot] = static_cast<std::uint32_t>(result.lines.size());
      if (initial[slot].seed_reason != 0u) {
        ++result.seeds_outside;
        continue;
      }
      if (initial[slot].count == 0u) ++result.seeds_without_direction;
      for (std::uint32_t d = 0; d < initial[slot].count; ++d) {
        result.lines.push_back((slot << kernel::direction_bits) | d);
      }
    }
    result.output.reserve(result.lines.size());
    for (const std::uint32_t slot : slot_of_seed) {
      const std::uint32_t count = initial[slot].seed_reason != 0u ? 0u : initial[slot].count;
      for (std::uint32_t d = 0; d < count; ++d) result.output.push_back(first_line[slot] + d);
    }
    return result;
  }

  Status send_lines(Lane& lane, const PieceLines& lines, kernel::PagedWork& work) {
    const std::size_t count = lines.lines.size();
    CGL_TRY(lane.up.reserve(device_, count * sizeof(std::uint32_t)));
    const auto staged = lane.up.as<std::uint32_t>(count);
    std::copy(lines.lines.begin(), lines.lines.end(), staged.begin());
    CGL_TRY(send(lane, lane.lines, std::span<const std::uint32_t>(staged)));
    CGL_TRY(lane.halves.reserve(device_, 2 * count * sizeof(kernel::HalfRecord), lane.is_reserve));
    CGL_TRY(lane.queue->fill(lane.halves.buffer(), 0, 2 * count * sizeof(kernel::HalfRecord), std::byte{0xff}));
    CGL_TRY(lane.queue->fill(lane.counters.buffer(), 0, counter_bytes, std::byte{0}));
    work.halves = {.lines = lane.lines.as<const std::uint32_t>(),
                   .places = nullptr,
                   .halves = lane.halves.as<kernel::HalfRecord>(),
                   .queue = lane.counters.as<std::uint32_t>(),
                   .count = static_cast<std::uint32_t>(input_.plan.one_sided != 0u ? count : 2 * count)};
    // A guess of three pages to a half; what was needed before is there still.
    constexpr std::uint64_t guess = 3;
    const std::uint64_t pages = options_.first_pages > 0 ? options_.first_pages : guess * work.halves.count;
    if (lane.page_capacity != pages) {
      lane.page_capacity = 0;
      CGL_TRY(lane.pages.reserve(device_, pages * page_bytes, lane.is_reserve));
      CGL_TRY(lane.next.reserve(device_, pages * sizeof(std::uint32_t), lane.is_reserve));
      // A test's wish is a limit, too.
      lane.page_capacity = static_cast<std::uint32_t>(
          options_.first_pages > 0 ? std::min(options_.first_pages, lane.pages_there()) : lane.pages_there());
    }
    work.store = store_of(lane);
    if (!bricks_.empty()) {
      const std::uint64_t bytes = 2 * count * sizeof(kernel::PausedHalf);
      CGL_TRY(lane.paused.reserve(device_, bytes, lane.is_reserve));
      CGL_TRY(lane.queue->fill(lane.paused.buffer(), 0, bytes, std::byte{0}));
      work.brick.paused = lane.paused.as<kernel::PausedHalf>();
    }
    return {};
  }

  static kernel::PageStore store_of(const Lane& lane) {
    return {.pages = lane.pages.as<float>(),
            .next = lane.next.as<std::uint32_t>(),
            .used = lane.counters.as<std::uint32_t>(pages_counter_offset),
            .capacity = lane.page_capacity};
  }

  // Until all are finished. The records stay in the lane's host memory.
  Result<std::span<const kernel::HalfRecord>> track_halves(Lane& lane, kernel::PagedWork& work, std::size_t lines) {
    for (;;) {
      CGL_TRY_ASSIGN(const std::span<const kernel::HalfRecord> halves, run_halves(lane, work, lines));
      std::vector<std::uint32_t> unfinished;
      const std::size_t every = input_.plan.one_sided != 0u ? 2 : 1;
      for (std::size_t place = 0; place < halves.size(); place += every) {
        if (halves[place].reason == kernel::unfinished_half) unfinished.push_back(static_cast<std::uint32_t>(place));
      }
      if (unfinished.empty()) return halves;
      CGL_TRY(make_room(lane, unfinished.size()));
      work.store = store_of(lane);
      CGL_TRY(send_places(lane, unfinished, work));
    }
  }

  // One launch; what is known of all halves after it.
  Result<std::span<const kernel::HalfRecord>> run_halves(Lane& lane, const kernel::PagedWork& work, std::size_t lines) {
    CGL_TRY_ASSIGN(const auto begin, lane.queue->record());
    CGL_TRY(kernels_->track(*lane.queue, lane.slot, work));
    CGL_TRY_ASSIGN(const auto end, lane.queue->record());
    CGL_TRY(lane.down.reserve(device_, 2 * lines * sizeof(kernel::HalfRecord)));
    const std::span<kernel::HalfRecord> halves = lane.down.as<kernel::HalfRecord>(2 * lines);
    CGL_TRY(download(*lane.queue, halves, lane.halves.buffer()));
    CGL_TRY(lane.queue->synchronise());
    CGL_TRY_ASSIGN(const double milliseconds, end->milliseconds_since(*begin));
    kernel_nanoseconds_ += static_cast<std::uint64_t>(1e6 * milliseconds);
    CGL_TRY(lane.cancel.check());
    return halves;
  }

  // Which halves are next.
  Status send_places(Lane& lane, std::span<const std::uint32_t> places, kernel::PagedWork& work) {
    CGL_TRY(send(lane, lane.places, places));
    CGL_TRY(lane.queue->fill(lane.counters.buffer(), 0, sizeof(std::uint32_t), std::byte{0}));
    CGL_TRY(lane.queue->synchronise());
    work.halves.places = lane.places.as<const std::uint32_t>();
    work.halves.count = static_cast<std::uint32_t>(places.size());
    return {};
  }

  Status load_brick(Lane& lane, std::uint32_t which, kernel::PagedWork& work) {
    work.brick.low = bricks_.low(which);
    work.brick.high = bricks_.high(which);
    const std::uint64_t record_bytes = std::uint64_t{field_->stride} * field_->number_bytes();
    Queue& queue = *lane.queue;
    return resident_brick_.bring(
        *field_, bricks_, which, queue,
        [&](std::span<const std::uint32_t> numbers) { return upload(queue, record_of_voxel_.buffer(), numbers); },
        [&](const BrickRecords& run) {
          return queue.upload(records_.buffer(), run.at * record_bytes,
                              field_->stored_bytes().subspan(run.first * record_bytes, run.count * record_bytes));
        });
  }

  Status find_directions_in_bricks(Lane& lane, std::span<const numerics::Vec3> positions,
                                   std::span<const std::uint32_t> order, const kernel::PagedWork& work) {
    for (std::size_t first = 0; first < order.size();) {
      const std::uint32_t brick = bricks_.brick_at(positions[order[first]].z);
      std::size_t end = first + 1;
      while (end < order.size() && bricks_.brick_at(positions[order[end]].z) == brick) ++end;
      kernel::PagedWork part = work;
      CGL_TRY(load_brick(lane, brick, part));
      part.seeds.positions += 3 * first;
      part.seeds.index += first;
      part.seeds.directions += 3 * std::size_t{part.seeds.stride} * first;
      part.seeds.initial += first;
      part.seeds.count = static_cast<std::uint32_t>(end - first);
      CGL_TRY(lane.queue->fill(lane.counters.buffer(), 0, sizeof(std::uint32_t), std::byte{0}));
      CGL_TRY(kernels_->find_directions(*lane.queue, lane.slot, part));
      CGL_TRY(lane.queue->synchronise());
      first = end;
    }
    return {};
  }

  // The brick for which most halves wait is next, until all have ended.
  Result<std::span<const kernel::HalfRecord>> track_halves_in_bricks(Lane& lane,
                                                                     std::span<const numerics::Vec3> positions,
                                                                     std::span<const std::uint32_t> order,
                                                                     const PieceLines& lines, kernel::PagedWork& work) {
    const auto z_of_seed = [&](std::uint32_t place) {
      return positions[order[lines.lines[place / 2] >> kernel::direction_bits]].z;
    };
    BrickWaits waits(bricks_);
    const std::uint32_t every = input_.plan.one_sided != 0u ? 2 : 1;
    for (std::uint32_t place = 0; place < 2 * lines.lines.size(); place += every) {
      waits.add(z_of_seed(place), place);
    }
    std::span<const kernel::HalfRecord> halves;
    for (;;) {
      const std::optional<std::uint32_t> wanted = waits.most_wanted();
      if (!wanted) return halves;
      const std::uint32_t brick = *wanted;
      const std::vector<std::uint32_t> places = waits.take(brick);
      CGL_TRY(load_brick(lane, brick, work));
      CGL_TRY(send_places(lane, places, work));
      CGL_TRY_ASSIGN(halves, run_halves(lane, work, lines.lines.size()));
      std::size_t without_page = 0, ended = 0, left = 0;
      for (const std::uint32_t place : places) {
        const kernel::HalfRecord& half = halves[place];
        if (half.reason == kernel::unfinished_half) {
          ++without_page;
          waits.add(z_of_seed(place), place);
        } else if (half.reason == kernel::paused_half) {
          if (waits.add(std::bit_cast<float>(half.points), place) != brick) ++left;
        } else {
          ++ended;
        }
      }
      if (without_page > 0) {
        CGL_TRY(make_room(lane, without_page));
        work.store = store_of(lane);
      } else if (ended + left == 0) {
        return tl::make_unexpected(stuck_in_brick(device_.id()));
      }
    }
  }

  // More pages; those that are written stay.
  Status make_room(Lane& lane, std::size_t unfinished) {
    const std::uint64_t old = lane.page_capacity;
    // What is there already costs nothing.
    const std::uint64_t pages =
        lane.pages_there() > old
            ? lane.pages_there()
            : std::min<std::uint64_t>(std::max<std::uint64_t>(2 * old, old + 3 * unfinished), kernel::no_page);
    if (pages == old) {
      return fail(ErrorKind::out_of_memory, "device {}: more than {} pages of points in one piece", device_.id(), old);
    }
    // Both are there before either is given up.
    CGL_TRY(lane.next.grow(*lane.queue, pages * sizeof(std::uint32_t), old * sizeof(std::uint32_t)));
    CGL_TRY(lane.pages.grow(*lane.queue, pages * page_bytes, old * page_bytes));
    const std::array<std::uint32_t, 1> used = {static_cast<std::uint32_t>(old)};
    CGL_TRY(upload(*lane.queue, lane.counters.buffer(), std::span<const std::uint32_t>(used), pages_counter_offset));
    CGL_TRY(lane.queue->synchronise());
    lane.page_capacity = static_cast<std::uint32_t>(pages);
    return {};
  }

  Status bring_back(Lane& lane, SeedRange range, std::span<const std::uint32_t> order, const PieceLines& lines,
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
    // Room without zeros: the parts are appended as they arrive.
    const std::size_t needed = first_point + 3 * static_cast<std::size_t>(offsets[count]);
    if (batch.points.capacity() < needed) {
      batch.points.reserve(first_point == 0 ? needed : std::max(needed, 2 * batch.points.capacity()));
    }
    if (count > 0) {
      Status outcome = copy_parts(lane, lines, offsets, part_begins, largest_part, work, batch.points);
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
      const std::uint32_t slot = lines.lines[line] >> kernel::direction_bits;
      batch.offsets.push_back(first_point / 3 + offsets[i + 1]);
      batch.seed_index.push_back(range.first + order[slot]);
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
  Status copy_parts(Lane& lane, const PieceLines& lines, std::span<const std::uint64_t> offsets,
                    std::span<const std::size_t> part_begins, std::uint64_t largest_part, kernel::PagedWork& work,
                    std::vector<float>& points) {
    const std::size_t count = lines.output.size();
    CGL_TRY(lane.up.reserve(device_, 2 * count * sizeof(std::uint32_t)));
    const auto line = lane.up.as<std::uint32_t>(count);
    const auto offset = lane.up.as<std::uint32_t>(count, count * sizeof(std::uint32_t));
    std::copy(lines.output.begin(), lines.output.end(), line.begin());
    for (std::size_t part = 0; part + 1 < part_begins.size(); ++part) {
      for (std::size_t i = part_begins[part]; i < part_begins[part + 1]; ++i) {
        offset[i] = static_cast<std::uint32_t>(offsets[i] - offsets[part_begins[part]]);
      }
    }
    CGL_TRY(send(lane, lane.output_line, std::span<const std::uint32_t>(line)));
    CGL_TRY(send(lane, lane.output_offset, std::span<const std::uint32_t>(offset)));
    const std::uint64_t part_bytes = 3 * sizeof(float) * largest_part;
    for (std::size_t i = 0; i < std::min<std::size_t>(part_begins.size() - 1, 2); ++i) {
      CGL_TRY(lane.parts[i].reserve(device_, part_bytes, lane.is_reserve));
      CGL_TRY(lane.parts_down[i].reserve(device_, part_bytes));
    }
    std::unique_ptr<Event> arrived;
    std::span<const float> waiting;
    for (std::size_t part = 0; part + 1 < part_begins.size(); ++part) {
      const std::size_t begin = part_begins[part], end = part_begins[part + 1];
      const Room& room = lane.parts[part % 2];
      work.output = {.line = lane.output_line.as<const std::uint32_t>() + begin,
                     .offset = lane.output_offset.as<const std::uint32_t>() + begin,
                     .points = room.as<float>(),
                     .count = static_cast<std::uint32_t>(end - begin)};
      CGL_TRY(kernels_->compact(*lane.queue, work));
      const std::span<float> from =
          lane.parts_down[part % 2].as<float>(static_cast<std::size_t>(3 * (offsets[end] - offsets[begin])));
      CGL_TRY(download(*lane.queue, from, room.buffer()));
      CGL_TRY_ASSIGN(auto event, lane.queue->record());
      if (arrived) CGL_TRY(take_part(*arrived, waiting, points));
      arrived = std::move(event);
      waiting = from;
    }
    return take_part(*arrived, waiting, points);
  }

  static Status take_part(Event& arrived, std::span<const float> from, std::vector<float>& points) {
    CGL_TRY(arrived.wait());
    points.insert(points.end(), from.begin(), from.end());
    return {};
  }

  Device& device_;
  std::unique_ptr<PagedKernels> kernels_;
  const PagedTrackerOptions options_;
  Room tables_, record_of_voxel_, records_;
  const Field* field_ = nullptr;
  FieldBricks bricks_;  // empty: the whole field is on the device
  ResidentBrick resident_brick_;
  TrackingInput input_{};
  const Seeds* seeds_ = nullptr;
  const GivenDirections* directions_ = nullptr;
  std::atomic<std::uint64_t> kernel_nanoseconds_ = 0;
  std::mutex mutex_;
  std::condition_variable lane_is_free_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // those that no thread uses; guarded by mutex_
  std::vector<std::uint32_t> free_slots_;     // of lanes that are not made; guarded by mutex_
};

}  // namespace

std::unique_ptr<Tracker> make_paged_tracker(Device& device, std::unique_ptr<PagedKernels> kernels,
                                            const PagedTrackerOptions& options) {
  return std::make_unique<PagedTracker>(device, std::move(kernels), options);
}

}  // namespace cingulum
