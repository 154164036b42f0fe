// The context of a body that runs as a CPU thread: one lane, a mailbox before it, a mailbox or other actors behind it.
// ring/actor/actor_context.hpp says what the calls mean.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ring/actor/actor.hpp"
#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_table.hpp"
#include "ring/actor/reply_ring.hpp"
#include "ring/actor/reply_table.hpp"
#include "ring/queue/mailbox.hpp"

namespace cingulum::ring {

class CpuContext;

// What the actor's thread and its CpuActor share.
struct CpuActorCore {
  using Targets = std::vector<std::shared_ptr<MessageSink>>;

  CpuActorCore(std::string actor_name, std::uint16_t actor_number, std::function<int(CpuContext&)> actor_body,
               const ActorOptions& options, RuntimeServices runtime_services);
  ~CpuActorCore();

  const std::string name;
  const std::uint16_t number;
  const std::function<int(CpuContext&)> body;
  const RuntimeServices services;
  const int processor;

  Mailbox inbox;
  Mailbox outbox;
  std::atomic<bool> stop{false};
  std::atomic<bool> drains{false};  // the body does not wait any more for those who read its answers
  std::atomic<std::uint64_t> late_replies{0};
  std::atomic<std::uint64_t> dead_letters{0};
  std::atomic<std::uint64_t> discarded{0};
  std::atomic<bool> running{false};  // a body runs, or is about to
  Doorbell ended;                    // rings when running becomes false

  // Read by the thread at any time; what was wired before is kept until the wires are cut.
  std::array<std::atomic<const Targets*>, port_count> ports = {};
  std::mutex wires_mutex;
  std::vector<std::unique_ptr<const Targets>> wires;

  // Null: the actor has no reply buffers. The rest is the body's, and goes on when it starts again.
  std::shared_ptr<ReplyRing> replies;
  std::uint64_t reply_position = 0;
  std::optional<ReplySlot> reply_in_hand;  // at the position

  ActorCounters counters;  // written by the thread, with relaxed stores
  LatencyHistogram latency;
  alignas(16) std::array<unsigned char, state_capacity> state_bytes = {};
};

class CpuContext {
 public:
  explicit CpuContext(CpuActorCore& core);
  CpuContext(const CpuContext&) = delete;
  CpuContext& operator=(const CpuContext&) = delete;
  ~CpuContext();

  [[nodiscard]] bool receive(Message& message);
  template <MessagePayload T>
  [[nodiscard]] Received<T> receive() {
    return receive_only<T>(*this);
  }
  [[nodiscard]] GetStatus try_receive(Message& message);
  [[nodiscard]] bool peek(Message& message);
  PutStatus send(const Message& message);
  PutStatus emit(std::uint32_t port, const Message& message);
  [[nodiscard]] bool should_stop() const { return core_.stop.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_wanted(const Message& request) const {
    return !request.has(mark_request) || core_.services.replies->is_wanted(request.header.correlation);
  }
  void heartbeat() { count(core_.counters.heartbeat); }
  [[nodiscard]] std::uint64_t time_ns() const {
    return core_.services.schedule != nullptr ? core_.services.schedule->now_ns() : steady_now_ns();
  }
  [[nodiscard]] std::uint32_t lane() const { return 0; }
  [[nodiscard]] std::uint32_t lanes() const { return 1; }
  void sync() const {}
  [[nodiscard]] std::uint16_t self() const { return core_.number; }
  template <class State>
  [[nodiscard]] State& state() {
    static_assert(std::is_trivially_copyable_v<State> && sizeof(State) <= state_capacity && alignof(State) <= 16);
    return *reinterpret_cast<State*>(core_.state_bytes.data());
  }

  // The bytes behind a handle; null when it is stale.
  [[nodiscard]] void* buffer(BufferHandle handle) const {
    const BufferTable& table = *core_.services.buffers;
    const std::span<const BufferEntry> entries = table.entries();
    return find_buffer<HostAtomics>(entries.data(), static_cast<std::uint32_t>(entries.size()), table.number(), handle);
  }

  [[nodiscard]] ReplySpace reply_buffer();
  template <class Memory>
  [[nodiscard]] Memory* block_memory() {
    static_assert(std::is_trivially_copyable_v<Memory> && alignof(Memory) <= 16);
    return sizeof(Memory) <= block_bytes_ ? reinterpret_cast<Memory*>(block_.get()) : nullptr;
  }
  [[nodiscard]] std::uint32_t seat() const { return 0; }
  [[nodiscard]] std::uint32_t seats() const { return 1; }
  [[nodiscard]] bool sync_seats() const { return !should_stop(); }

  [[nodiscard]] std::uint64_t read_shared(const std::uint64_t& word) const { return HostAtomics::load_acquire(word); }
  void write_shared(std::uint64_t& word, std::uint64_t value) { HostAtomics::store_release(word, value); }
  void back_off();

  // Before the body runs: what it asks for by block_bytes_of.
  void provide_block(std::uint32_t bytes) {
    block_ = std::make_unique<std::byte[]>(bytes);
    block_bytes_ = bytes;
  }
  // The request that the body works on; 0: none. Read when its failure is reported.
  [[nodiscard]] std::uint64_t current_request() const { return current_request_; }
  [[nodiscard]] bool has_current() const { return has_current_; }

 private:
  static void count(std::uint64_t& counter, std::uint64_t by = 1) { HostAtomics::store_relaxed(counter, counter + by); }
  void begin(const Envelope& envelope, Message& message);
  PutStatus deliver(MessageSink& target, const Message& message);
  PutStatus answer(const Message& reply);
  // A reply buffer that this message names is its reader's now.
  void hand_over(const Message& sent);

  CpuActorCore& core_;
  std::unique_ptr<std::byte[]> block_;
  std::uint32_t block_bytes_ = 0;
  std::uint64_t busy_since_ns_;
  std::uint64_t current_request_ = 0;
  bool has_current_ = false;
  std::uint32_t back_offs_ = 0;
};
static_assert(ActorContext<CpuContext>);

}  // namespace cingulum::ring
