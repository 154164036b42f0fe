// Memory of the threads that decode or encode chunks: lent for a piece of work and taken by the next, so that there is
// as much of it as threads work at a time.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "zarr/codec_chain.hpp"

namespace cingulum::zarr {

// any thread
class ScratchPool {
 public:
  class Loan {
   public:
    Loan(ScratchPool& pool, std::unique_ptr<CodecScratch> scratch) : pool_(&pool), scratch_(std::move(scratch)) {}
    Loan(Loan&& other) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (scratch_ == nullptr) return;
      const std::lock_guard lock(pool_->mutex_);
      // There is room: take() made it.
      pool_->free_.push_back(std::move(scratch_));
    }
    [[nodiscard]] CodecScratch& operator*() const { return *scratch_; }

   private:
    ScratchPool* pool_;
    std::unique_ptr<CodecScratch> scratch_;
  };

  [[nodiscard]] Loan take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(++made_);
      return {*this, std::make_unique<CodecScratch>()};
    }
    auto scratch = std::move(free_.back());
    free_.pop_back();
    return {*this, std::move(scratch)};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CodecScratch>> free_;
  std::size_t made_ = 0;
};

}  // namespace cingulum::zarr
