// A resident grid of host threads: a thread per block, ordinary memory as mapped and as device memory. For tests of all
// that does not need a GPU; it can also play a device whose context is lost.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <typeinfo>

#include "ring/resident/emulated_machine.hpp"
#include "ring/resident/resident_backend.hpp"
#include "ring/resident/seat_loop.hpp"

namespace cingulum::ring {

template <class Machine, class... Bodies>
class ThreadBackend final : public ResidentBackend {
 public:
  explicit ThreadBackend(std::vector<std::string> names, bool display = false)
      : names_(std::move(names)), display_(display) {}
  ~ThreadBackend() override { join(); }

  [[nodiscard]] std::string id() const override { return "emulated"; }
  [[nodiscard]] const std::vector<std::string>& actors() const override { return names_; }
  [[nodiscard]] const std::vector<BodyType>& body_types() const override { return types_; }
  [[nodiscard]] Result<MappedMemory> allocate_mapped(std::uint64_t bytes) override {
    CGL_TRY_ASSIGN(std::byte * memory, allocate_device(bytes));
    return MappedMemory{memory, memory};
  }
  [[nodiscard]] Result<std::byte*> allocate_device(std::uint64_t bytes) override {
    const std::uint64_t whole = (bytes + line_bytes - 1) / line_bytes * line_bytes;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(line_bytes, whole));
    if (memory == nullptr) return fail(ErrorKind::out_of_memory, "emulated grid: {} bytes", bytes);
    std::memset(memory, 0, whole);
    memory_.emplace_back(memory);
    return memory;
  }
  [[nodiscard]] Status clear_device(std::byte* memory, std::uint64_t bytes) override {
    std::memset(memory, 0, bytes);
    return {};
  }
  [[nodiscard]] Status store_device_word(std::uint64_t* word, std::uint64_t value) override {
    HostAtomics::store_release(*word, value);
    return {};
  }
  [[nodiscard]] Result<std::uint64_t> load_device_word(const std::uint64_t* word) override {
    return HostAtomics::load_acquire(*word);
  }
  [[nodiscard]] Result<std::uint32_t> most_seats(std::uint32_t, std::uint32_t most_processors) override {
    return most_processors == 0 ? 64 : most_processors;
  }
  [[nodiscard]] bool ends_long_kernels() const override { return display_; }
  [[nodiscard]] Status launch(const GridPlan& plan, std::uint32_t lanes) override {
    join();
    running_ = plan.seat_count;
    ++launches_;
    for (std::uint32_t seat = 0; seat < plan.seat_count; ++seat) {
      blocks_.emplace_back([this, plan, seat, lanes] {
        constexpr std::size_t bytes = sizeof(SeatShared) + BodyList<Bodies...>::block_bytes;
        const std::unique_ptr<std::byte, Free> block(static_cast<std::byte*>(std::aligned_alloc(line_bytes, bytes)));
        auto& shared = *new (block.get()) SeatShared;
        Machine::run_block(lanes, shared, [&] { run_seat<Machine, BodyList<Bodies...>>(plan, seat, shared); });
        --running_;
      });
    }
    return {};
  }
  [[nodiscard]] Result<bool> has_ended() override {
    if (lost_) return fail(ErrorKind::device, "the context of the emulated device is lost");
    return running_ == 0;
  }

  void lose_context() { lost_ = true; }
  [[nodiscard]] std::uint32_t launches() const { return launches_; }

 private:
  void join() {
    for (std::thread& block : blocks_) block.join();
    blocks_.clear();
  }
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  const std::vector<std::string> names_;
  const std::vector<BodyType> types_{BodyType{typeid(Bodies).name(), sizeof(Bodies)}...};
  const bool display_;
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
  std::vector<std::thread> blocks_;
  std::atomic<std::uint32_t> running_{0};
  std::atomic<std::uint32_t> launches_{0};
  std::atomic<bool> lost_{false};
};

template <class... Bodies>
using EmulatedBackend = ThreadBackend<EmulatedMachine, Bodies...>;

}  // namespace cingulum::ring
