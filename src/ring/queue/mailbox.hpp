// The queue before a CPU actor (and behind it, towards the host): four priority bands, each a ring with many writers
// and one reader, with the policies for a full band, time to live, the gate of deactivation, closing and waiting.
// Capacity counts for each band by itself, so that traffic of one band never takes the room of a more urgent one. Put
// and take cost the same whatever is queued.
//
// Bands are taken in order of urgency, but every fairness_interval-th take begins at the next band in turn: the head of
// any band is taken after at most 4 * fairness_interval takes. Within a band messages keep their order.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "ring/actor/actor_options.hpp"
#include "ring/queue/message.hpp"
#include "ring/queue/mpsc_ring.hpp"
#include "ring/queue/waiting.hpp"
#include "ring/telemetry/telemetry.hpp"

namespace cingulum::ring {

struct Envelope {
  Message message;
  std::uint64_t expires_ns = no_deadline;
  std::uint64_t sent_ns = 0;  // 0: not sampled for the latency histogram
};

struct MailboxOptions {
  std::uint32_t capacity = 4096;  // of each band, a power of two
  FullPolicy policy = FullPolicy::block;
  WaitStrategy waiting;
  std::uint32_t fairness_interval = 16;
  std::uint32_t latency_sample_interval = 0;
  Schedule* schedule = nullptr;
  std::function<void(const Message&)> on_expired = {};  // by the reader, for each that outlived its time
};

class Mailbox {
 public:
  explicit Mailbox(const MailboxOptions& options);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox();

  // Any thread. `stop`: gives up with `closed` when it becomes true.
  PutStatus put(const Message& message, std::uint64_t deadline_ns = no_deadline, std::uint64_t expires_ns = no_deadline,
                const std::atomic<bool>* stop = nullptr);
  // Up to `count`, without waiting; stops at the first that is not stored. Answers how many were.
  std::uint32_t put_batch(const Message* messages, std::uint32_t count);

  // The reader only. `empty` also while the gate is shut.
  GetStatus try_take(Envelope& envelope);
  // The reader only: what try_take would take now, left where it is. False: nothing, or the gate is shut.
  bool peek(Envelope& envelope);
  GetStatus take(Envelope& envelope, std::uint64_t deadline_ns, const std::atomic<bool>* stop = nullptr);
  // The reader only, gate or not: takes all that is there, and all that writers are about to finish when it is closed.
  // Answers how many there were; `each` is called with every one.
  std::uint64_t clear(const std::function<void(const Message&)>& each = {});

  // Any thread. Shut: nothing is taken until it opens. Answers when the reader has seen it, or at the deadline.
  bool set_gate(bool open, std::uint64_t deadline_ns);
  // Any thread: nothing is accepted any more, what is there can be taken; wakes all who wait.
  void close();
  // Wakes all who wait, so that they look at their stop word.
  void wake();

  [[nodiscard]] bool is_closed() const { return closed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t depth() const;
  [[nodiscard]] std::uint64_t depth(Band band) const;
  // Any thread: the reader has come back since its last message, and found nothing. It has not before its first look.
  [[nodiscard]] bool reader_waits() const { return reader_waits_.load(std::memory_order_acquire); }
  // The largest depth that the reader saw, which looks at every fairness_interval-th take; `capacity` once a band was
  // full.
  [[nodiscard]] std::uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t capacity() const { return options_.capacity; }
  // rejected, dropped_new, dropped_oldest and expired are filled in.
  [[nodiscard]] LossCounters losses() const;

 private:
  struct alignas(line_bytes) Slot {
    std::uint32_t sequence = 0;
    Envelope value;
  };
  using RefusingRing = MpscRing<Envelope, HostAtomics, Slot>;
  using OverwritingRing = MpscOverwritingRing<Envelope>;
  struct BandRing;
  struct Unmap;

  [[nodiscard]] PutStatus try_put(const Envelope& envelope, std::uint32_t band);
  [[nodiscard]] bool take_from(Envelope& envelope, std::uint32_t band);
  [[nodiscard]] bool peek_into(Envelope& envelope, std::uint32_t band);
  [[nodiscard]] bool is_expired(const Envelope& envelope) const;
  void count_expired(const Envelope& envelope);
  [[nodiscard]] GetStatus take_any(Envelope& envelope);
  [[nodiscard]] bool all_ended() const;
  void note_peak(std::uint64_t depth);

  const MailboxOptions options_;
  std::unique_ptr<BandRing[]> bands_;
  Doorbell messages_;  // the reader waits here
  Doorbell room_;      // writers wait here
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> dropped_new_{0};
  std::atomic<std::uint64_t> expired_before_{0};  // counted by writers

  alignas(line_bytes) std::atomic<std::uint32_t> gate_{0};       // odd: shut; grows with every change
  alignas(line_bytes) std::atomic<std::uint32_t> gate_seen_{0};  // what follows is the reader's
  std::atomic<bool> reader_waits_{false};
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> peak_{0};
  std::uint32_t takes_ = 0;
  std::uint32_t turn_ = 0;
};

}  // namespace cingulum::ring
