// The account of one device's memory in this process: what is handed out, the peak, an optional limit, and a hook by
// which a test makes the n-th allocation fail. Every buffer that a Device hands out passes through it, so limits and
// failure tests are written once and hold for CPU, CUDA and WebGPU alike. A backend's own staging, which is bounded (64
// MiB a queue on WebGPU), is not counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"

namespace cingulum {

// All members: any thread
class MemoryBudget {
 public:
  // Charges `bytes`, or refuses with the numbers when the limit would be passed.
  [[nodiscard]] Status charge(std::string_view device_id, std::uint64_t bytes);
  void refund(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t used_bytes() const { return used_.load(); }
  [[nodiscard]] std::uint64_t peak_bytes() const { return peak_.load(); }
  void forget_peak() { peak_.store(used_.load()); }
  [[nodiscard]] std::uint64_t allocations() const { return allocations_.load(); }

  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const;
  void set_limit(std::optional<std::uint64_t> bytes);

  // The n-th charge from now (1 = the next) fails once; 0 switches this off.
  void fail_nth_allocation(std::uint64_t n) { fail_countdown_.store(n); }

 private:
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> limit_{no_limit};
  std::atomic<std::uint64_t> fail_countdown_{0};
};

// A charge that is refunded when its owner (a buffer) goes away.
class BudgetCharge {
 public:
  BudgetCharge(MemoryBudget& budget, std::uint64_t bytes) : budget_(&budget), bytes_(bytes) {}
  BudgetCharge(BudgetCharge&& other) noexcept : budget_(other.budget_), bytes_(other.bytes_) {
    other.budget_ = nullptr;
  }
  BudgetCharge& operator=(BudgetCharge&&) = delete;
  BudgetCharge(const BudgetCharge&) = delete;
  BudgetCharge& operator=(const BudgetCharge&) = delete;
  ~BudgetCharge() {
    if (budget_ != nullptr) budget_->refund(bytes_);
  }
  // The charge stays: someone else refunds it.
  void release() { budget_ = nullptr; }

 private:
  MemoryBudget* budget_;
  std::uint64_t bytes_;
};

}  // namespace cingulum
