#include "device/memory_budget.hpp"

#include "base/quantity.hpp"

namespace cingulum {

Status MemoryBudget::charge(std::string_view device_id, std::uint64_t bytes) {
  std::uint64_t countdown = fail_countdown_.load();
  while (countdown != 0 && !fail_countdown_.compare_exchange_weak(countdown, countdown - 1)) {
  }
  if (countdown == 1) {
    return fail(ErrorKind::out_of_memory, "device {}: {} could not be allocated (failure injected by a test)",
                device_id, format_bytes(bytes));
  }
  const std::uint64_t limit = limit_.load();
  std::uint64_t used = used_.load();
  do {
    if (bytes > limit || used > limit - bytes) {
      return fail(
          ErrorKind::out_of_memory,
          "device {}: {} needed, {} left of the limit of {}; raise CINGULUM_MEMORY_LIMIT or ask for less at a time",
          device_id, format_bytes(bytes), format_bytes(used > limit ? 0 : limit - used), format_bytes(limit));
    }
  } while (!used_.compare_exchange_weak(used, used + bytes));
  allocations_.fetch_add(1);
  std::uint64_t peak = peak_.load();
  while (peak < used + bytes && !peak_.compare_exchange_weak(peak, used + bytes)) {
  }
  return {};
}

void MemoryBudget::refund(std::uint64_t bytes) {
  used_.fetch_sub(bytes);
}

std::optional<std::uint64_t> MemoryBudget::limit_bytes() const {
  const std::uint64_t limit = limit_.load();
  if (limit == no_limit) return std::nullopt;
  return limit;
}

void MemoryBudget::set_limit(std::optional<std::uint64_t> bytes) {
  limit_.store(bytes.value_or(no_limit));
}

}  // namespace cingulum
