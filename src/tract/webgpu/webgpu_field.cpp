#include "tract/webgpu/webgpu_field.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/quantity.hpp"
#include "tract/webgpu/streamline_words.hpp"

namespace cingulum {
namespace {

constexpr std::size_t most_spare_blocks = 8;

}  // namespace

std::uint64_t WebgpuField::page_memory(std::uint32_t pages) {
  return std::uint64_t{pages} * (entry_words + page_words) * sizeof(std::uint32_t);
}

Status WebgpuField::bring(const Field& field, FieldBricks bricks, FieldPieces pieces, std::uint64_t records_at_once,
                          std::uint32_t reach) {
  field_ = &field;
  bricks_ = std::move(bricks);
  pieces_ = pieces;
  reach_ = reach;
  const std::uint64_t record_bytes = std::uint64_t{field.stride} * field.number_bytes();
  for (std::uint32_t piece = 0; piece < pieces_.count; ++piece) {
    const std::uint64_t first = std::uint64_t{piece} * pieces_.records_per_piece;
    const std::uint64_t count = std::min<std::uint64_t>(pieces_.records_per_piece, records_at_once - first);
    CGL_TRY_ASSIGN(records_.emplace_back(), device_.allocate(count * record_bytes));
  }
  if (!bricks_.empty()) {
    log_info("device {}: the field of {} is tracked in {} bricks of up to {}", device_.id(),
             format_bytes(field.stored_bytes().size()), bricks_.size(), format_bytes(bricks_.largest_bytes()));
    return {};
  }
  CGL_TRY_ASSIGN(const auto queue, device_.create_queue());
  CGL_TRY(upload_records(*queue, {0, 0, records_at_once}));
  return queue->synchronise();
}

// Records [first, first + count) of the field to the place `at`, counted in records, over all pieces.
Status WebgpuField::upload_records(Queue& queue, BrickRecords records) const {
  auto [at, first, count] = records;
  const std::uint64_t record_bytes = std::uint64_t{field_->stride} * field_->number_bytes();
  while (count > 0) {
    const std::uint64_t piece = at / pieces_.records_per_piece, within = at % pieces_.records_per_piece;
    const std::uint64_t some = std::min(count, pieces_.records_per_piece - within);
    CGL_TRY(queue.upload(*records_[piece], within * record_bytes,
                         field_->stored_bytes().subspan(first * record_bytes, some * record_bytes)));
    at += some;
    first += some;
    count -= some;
  }
  return {};
}

Result<std::shared_ptr<const WebgpuTables>> WebgpuField::tables_for(const TrackingPlan& plan,
                                                                    const DeviceTables* made) {
  if (!bricks_.empty() && planes_in_reach(plan) > reach_) {
    return fail(ErrorKind::out_of_memory,
                "device {}: its bricks of the field reach {} planes beyond a point, this plan needs {}; open the field "
                "with the plan that reaches farthest, or use {} cpu",
                device_.id(), reach_, planes_in_reach(plan), argument_name("device"));
  }
  const auto make = [&]() -> Result<std::shared_ptr<const WebgpuTables>> {
    CGL_TRY_ASSIGN(DeviceTables of_getter, made != nullptr ? *made : make_device_tables(plan, *field_));
    auto kept = std::make_shared<WebgpuTables>(std::move(of_getter));
    const std::span<const std::uint32_t> words(kept->tables.words);
    const std::span<const std::uint32_t> record_of_voxel(field_->record_of_voxel);
    CGL_TRY_ASSIGN(const auto queue, device_.create_queue());
    CGL_TRY_ASSIGN(kept->buffer, device_.allocate(words.size_bytes() + record_of_voxel.size_bytes()));
    CGL_TRY(upload(*queue, *kept->buffer, words));
    if (bricks_.empty()) CGL_TRY(upload(*queue, *kept->buffer, record_of_voxel, words.size_bytes()));
    CGL_TRY(queue->synchronise());
    return kept;
  };
  return tables_.get(plan.getter, make);
}

Result<std::shared_ptr<Kernel>> WebgpuField::kernel_for(const KernelSource& source) {
  const std::lock_guard lock(kernel_mutex_);
  // A text gives different code with and without checks of bounds.
  const std::string key = (source.trusted ? "trusted\n" : "checked\n") + source.text;
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  CGL_TRY_ASSIGN(std::shared_ptr<Kernel> kernel, device_.compile(source));
  const CompilationReport& report = kernel->report();
  log_debug("device {}: the tracking kernel was compiled in {:.0f} ms{}", device_.id(), report.milliseconds,
            report.from_cache ? ", earlier" : "");
  kernels_.emplace(key, kernel);
  return kernel;
}

Status WebgpuField::load_brick(Queue& queue, const WebgpuTables& tables, std::uint32_t which) {
  // Each getter's tables have numbers of records of their own.
  if (brick_tables_ != &tables) resident_brick_.forget();
  brick_tables_ = &tables;
  return resident_brick_.bring(
      *field_, bricks_, which, queue,
      [&](std::span<const std::uint32_t> numbers) {
        return upload(queue, *tables.buffer, numbers, tables.tables.words.size() * sizeof(std::uint32_t));
      },
      [&](const BrickRecords& records) { return upload_records(queue, records); });
}

Result<std::unique_ptr<WebgpuWorkspace>> WebgpuField::make_workspace(std::uint64_t work_bytes) {
  auto workspace = std::make_unique<WebgpuWorkspace>();
  CGL_TRY_ASSIGN(workspace->queue, device_.create_queue());
  CGL_TRY_ASSIGN(workspace->pages, device_.allocate(page_memory(pages_)));
  CGL_TRY_ASSIGN(workspace->work, device_.allocate(work_bytes));
  return workspace;
}

Status WebgpuField::have_workspace(std::uint64_t work_bytes, std::uint32_t pages) {
  if (pages_ != 0) {
    // A plan beside others: one of the workspaces has to have room for it.
    std::unique_lock lock(mutex_);
    std::unique_ptr<WebgpuWorkspace> workspace = wait_for_workspace(lock);
    lock.unlock();
    Status outcome;
    if (workspace->work->bytes() < work_bytes) {
      auto larger = device_.allocate(work_bytes);
      if (larger) {
        workspace->work = std::move(*larger);
      } else {
        outcome = tl::make_unexpected(std::move(larger.error()));
      }
    }
    give_back(std::move(workspace));
    return outcome;
  }
  for (pages_ = pages;; pages_ = std::max(pages_ / 2, fewest_pages)) {
    auto made = make_workspace(work_bytes);
    if (made) {
      workspaces_.push_back(std::move(*made));
      return {};
    }
    if (made.error().kind() != ErrorKind::out_of_memory || pages_ <= fewest_pages) {
      pages_ = 0;
      return tl::make_unexpected(std::move(made.error()));
    }
  }
}

std::unique_ptr<WebgpuWorkspace> WebgpuField::wait_for_workspace(std::unique_lock<std::mutex>& lock) {
  workspace_is_free_.wait(lock, [&] { return !workspaces_.empty(); });
  // The one with the most room.
  const auto largest = std::max_element(workspaces_.begin(), workspaces_.end(), [](const auto& a, const auto& b) {
    return a->work->bytes() < b->work->bytes();
  });
  std::unique_ptr<WebgpuWorkspace> workspace = std::move(*largest);
  workspaces_.erase(largest);
  return workspace;
}

Result<std::unique_ptr<WebgpuWorkspace>> WebgpuField::take_workspace(std::uint64_t work_bytes,
                                                                     std::uint64_t least_bytes) {
  for (;;) {
    std::unique_ptr<WebgpuWorkspace> workspace;
    {
      std::unique_lock lock(mutex_);
      if (workspaces_.empty()) {
        lock.unlock();
        auto made = make_workspace(least_bytes);
        if (!made && made.error().kind() != ErrorKind::out_of_memory) return made;
        if (made) workspace = std::move(*made);
        lock.lock();
      }
      if (workspace == nullptr) workspace = wait_for_workspace(lock);
    }
    if (workspace->work->bytes() < work_bytes) {
      if (auto larger = device_.allocate(work_bytes); larger) workspace->work = std::move(*larger);
    }
    if (workspace->work->bytes() >= least_bytes) return workspace;
    // Others have the workspace with room for this plan: it comes back.
    give_back(std::move(workspace));
    std::unique_lock lock(mutex_);
    workspace_is_free_.wait(lock, [&] {
      return std::any_of(workspaces_.begin(), workspaces_.end(),
                         [&](const auto& each) { return each->work->bytes() >= least_bytes; });
    });
  }
}

void WebgpuField::give_back(std::unique_ptr<WebgpuWorkspace> workspace) {
  {
    const std::lock_guard lock(mutex_);
    workspaces_.push_back(std::move(workspace));
  }
  workspace_is_free_.notify_all();
}

PageBlock WebgpuField::take_block() {
  const std::lock_guard lock(mutex_);
  if (spare_blocks_.empty()) return {};
  PageBlock block = std::move(spare_blocks_.back());
  spare_blocks_.pop_back();
  return block;
}

void WebgpuField::keep_blocks(std::vector<PageBlock>& blocks) {
  const std::lock_guard lock(mutex_);
  for (PageBlock& block : blocks) {
    if (spare_blocks_.size() < most_spare_blocks) spare_blocks_.push_back(std::move(block));
  }
}

}  // namespace cingulum
