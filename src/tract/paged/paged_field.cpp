#include "tract/paged/paged_field.hpp"

#include "base/log.hpp"
#include "base/quantity.hpp"

namespace cingulum {

Status PagedField::bring(const Field& field, FieldBricks bricks, std::uint32_t reach) {
  CGL_TRY_ASSIGN(const auto queue, device_.create_queue());
  field_ = &field;
  bricks_ = std::move(bricks);
  reach_ = reach;
  const std::span<const std::uint32_t> numbers(field.record_of_voxel);
  CGL_TRY(record_of_voxel_.reserve(device_, numbers.size_bytes()));
  if (bricks_.empty()) {
    CGL_TRY(records_.reserve(device_, field.stored_bytes().size()));
    CGL_TRY(upload(*queue, record_of_voxel_.buffer(), numbers));
    CGL_TRY(upload(*queue, records_.buffer(), field.stored_bytes()));
  } else {
    CGL_TRY(records_.reserve(device_, bricks_.largest_bytes()));
    // Whole rows are read beyond the last record of a brick.
    CGL_TRY(queue->fill(records_.buffer(), 0, records_.buffer().bytes(), std::byte{0}));
    log_info("device {}: the field of {} is tracked in {} bricks of up to {}", device_.id(),
             format_bytes(field.stored_bytes().size()), bricks_.size(), format_bytes(bricks_.largest_bytes()));
  }
  CGL_TRY(queue->synchronise());
  const std::lock_guard lock(mutex_);
  for (std::uint32_t number = callers(); number-- > 1;) free_numbers_.push_back(number);
  return {};
}

Result<TrackingInput> PagedField::input_for(const TrackingPlan& plan, const DeviceTables* made,
                                            std::shared_ptr<const TablesOnDevice>& tables) {
  if (!bricks_.empty() && planes_in_reach(plan) > reach_) {
    return fail(ErrorKind::out_of_memory,
                "device {}: its bricks of the field reach {} planes beyond a point, this plan needs {}; open the field "
                "with the plan that reaches farthest, or use {} cpu",
                device_.id(), reach_, planes_in_reach(plan), argument_name("device"));
  }
  const auto make = [&]() -> Result<std::shared_ptr<const TablesOnDevice>> {
    CGL_TRY_ASSIGN(DeviceTables of_getter, made != nullptr ? *made : make_device_tables(plan, *field_));
    auto kept = std::make_shared<TablesOnDevice>(std::move(of_getter));
    const std::span<const std::uint32_t> words(kept->tables.words);
    CGL_TRY_ASSIGN(const auto queue, device_.create_queue());
    CGL_TRY(kept->words.reserve(device_, words.size_bytes()));
    CGL_TRY(upload(*queue, kept->words.buffer(), words));
    CGL_TRY(queue->synchronise());
    return kept;
  };
  CGL_TRY_ASSIGN(tables, tables_.get(plan.getter, make));
  TrackingInput input = with_pointers(tables->tables, tables->words.as<const std::uint32_t>(),
                                      record_of_voxel_.as<const std::uint32_t>(), records_.as<const void>());
  input.plan = plan;
  return input;
}

Result<std::unique_ptr<Caller>> PagedField::make_caller(std::uint32_t number) {
  auto caller = std::make_unique<Caller>();
  caller->number = number;
  CGL_TRY_ASSIGN(caller->queue, device_.create_queue());
  CGL_TRY(caller->counters.reserve(device_, counter_bytes));
  return caller;
}

Status PagedField::have_reserve_for(const TrackingPlan& plan) {
  const std::lock_guard alone(reserve_mutex_);
  const LaneSizes sizes(plan, options_.part_points, !bricks_.empty());
  if (reserve_sizes_ && sizes.fit_into(*reserve_sizes_)) return {};
  std::unique_ptr<Caller> reserve;
  if (reserve_sizes_) {
    std::unique_lock lock(mutex_);
    reserve = wait_for_reserve(lock);
  } else {
    CGL_TRY_ASSIGN(reserve, make_caller(0));
    reserve->is_reserve = true;
  }
  const bool is_first = !reserve_sizes_;
  Status outcome = sizes.reserve(device_, *reserve, !is_first);
  if (outcome) reserve_sizes_ = reserve_sizes_ ? sizes.larger_of(*reserve_sizes_) : sizes;
  if (outcome || !is_first) give_back(std::move(reserve));
  return outcome;
}

Result<std::unique_ptr<Caller>> PagedField::take_caller() {
  std::unique_lock lock(mutex_);
  bool may_make = true;
  for (;;) {
    caller_is_free_.wait(lock, [&] { return !idle_callers_.empty() || (may_make && !free_numbers_.empty()); });
    if (!idle_callers_.empty()) {
      std::unique_ptr<Caller> caller = std::move(idle_callers_.back());
      idle_callers_.pop_back();
      return caller;
    }
    const std::uint32_t number = free_numbers_.back();
    free_numbers_.pop_back();
    lock.unlock();
    auto caller = make_caller(number);
    if (caller) return caller;
    lock.lock();
    free_numbers_.push_back(number);
    caller_is_free_.notify_all();
    if (caller.error().kind() != ErrorKind::out_of_memory) return caller;
    may_make = false;
  }
}

void PagedField::give_back(std::unique_ptr<Caller> caller) {
  {
    const std::lock_guard lock(mutex_);
    idle_callers_.push_back(std::move(caller));
  }
  caller_is_free_.notify_all();
}

std::unique_ptr<Caller> PagedField::swap_for_reserve(std::unique_ptr<Caller> caller) {
  const std::uint32_t number = caller->number;
  caller.reset();
  std::unique_lock lock(mutex_);
  free_numbers_.push_back(number);
  caller_is_free_.notify_all();
  return wait_for_reserve(lock);
}

std::unique_ptr<Caller> PagedField::wait_for_reserve(std::unique_lock<std::mutex>& lock) {
  std::unique_ptr<Caller> reserve;
  caller_is_free_.wait(lock, [&] {
    for (auto& other : idle_callers_) {
      if (!other->is_reserve) continue;
      reserve = std::move(other);
      std::swap(other, idle_callers_.back());
      idle_callers_.pop_back();
      break;
    }
    return reserve != nullptr;
  });
  return reserve;
}

Status PagedField::load_brick(Caller& caller, std::uint32_t which, kernel::PagedWork& work) {
  work.brick.low = bricks_.low(which);
  work.brick.high = bricks_.high(which);
  const std::uint64_t record_bytes = std::uint64_t{field_->stride} * field_->number_bytes();
  Queue& queue = *caller.queue;
  return resident_brick_.bring(
      *field_, bricks_, which, queue,
      [&](std::span<const std::uint32_t> numbers) { return upload(queue, record_of_voxel_.buffer(), numbers); },
      [&](const BrickRecords& run) {
        return queue.upload(records_.buffer(), run.at * record_bytes,
                            field_->stored_bytes().subspan(run.first * record_bytes, run.count * record_bytes));
      });
}

}  // namespace cingulum
