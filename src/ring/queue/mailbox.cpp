#include "ring/queue/mailbox.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <thread>

namespace cingulum::ring {

// Zeroed memory that costs nothing until it is touched: most bands of most actors stay empty.
struct Mailbox::Unmap {
  std::size_t bytes = 0;
  void operator()(void* memory) const { ::munmap(memory, bytes); }
};

struct Mailbox::BandRing {
  void prepare(const MailboxOptions& options) {
    overwrites = options.policy == FullPolicy::drop_oldest;
    const std::size_t bytes = options.capacity * (overwrites ? sizeof(OverwritingRing::Slot) : sizeof(Slot));
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    memory = std::unique_ptr<void, Unmap>(mapped, Unmap{bytes});
    if (overwrites) {
      over = OverwritingRing({static_cast<OverwritingRing::Slot*>(mapped), &tail, &reader, options.capacity});
    } else {
      ring = RefusingRing({static_cast<Slot*>(mapped), &tail, &reader, options.capacity});
    }
  }
  [[nodiscard]] bool has_message() const { return overwrites ? over.has_message() : ring.has_message(); }
  [[nodiscard]] GetStatus try_get(Envelope& envelope) {
    return overwrites ? over.try_get(envelope) : ring.try_get(envelope);
  }
  [[nodiscard]] bool peek(Envelope& envelope) { return overwrites ? over.peek(envelope) : ring.peek(envelope); }
  [[nodiscard]] PutStatus try_put(const Envelope& envelope) {
    return overwrites ? over.put_over(envelope) : ring.try_put(envelope);
  }
  void close() { overwrites ? over.close() : ring.close(); }
  [[nodiscard]] bool ended() const { return overwrites ? over.ended() : ring.ended(); }
  [[nodiscard]] std::uint64_t depth() const { return overwrites ? over.depth() : ring.depth(); }

  MpscTail tail;
  RingLine reader;
  std::unique_ptr<void, Unmap> memory;
  bool overwrites = false;
  RefusingRing ring;
  OverwritingRing over;
};

Mailbox::Mailbox(const MailboxOptions& options)
    : options_(options),
      bands_(std::make_unique<BandRing[]>(band_count)),
      messages_(options.waiting, options.schedule),
      room_(options.waiting, options.schedule) {
  for (std::uint32_t band = 0; band < band_count; ++band) bands_[band].prepare(options_);
}

Mailbox::~Mailbox() = default;

PutStatus Mailbox::try_put(const Envelope& envelope, std::uint32_t band) {
  const PutStatus status = bands_[band].try_put(envelope);
  if (status == PutStatus::stored) messages_.ring();
  return status;
}

PutStatus Mailbox::put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                       const std::atomic<bool>* stop) {
  Envelope envelope{message, expires_ns, 0};
  if (options_.latency_sample_interval != 0) {
    thread_local std::uint32_t until_sample = 0;
    if (until_sample == 0 || until_sample >= options_.latency_sample_interval) {
      until_sample = options_.latency_sample_interval;
      envelope.sent_ns = messages_.now_ns();
    }
    --until_sample;
  }
  const auto band = static_cast<std::uint32_t>(message.band());
  PutStatus status = try_put(envelope, band);
  if (status == PutStatus::full) {
    note_peak(options_.capacity);
    if (options_.policy == FullPolicy::drop_new) {
      dropped_new_.fetch_add(1, std::memory_order_relaxed);
      return PutStatus::dropped_new;
    }
    if (options_.policy == FullPolicy::block) {
      const auto over = [&] {
        if (stop != nullptr && stop->load(std::memory_order_acquire)) {
          status = PutStatus::closed;
          return true;
        }
        status = try_put(envelope, band);
        return status != PutStatus::full;
      };
      if (!room_.wait(over, std::min(deadline_ns, expires_ns))) {
        if (expires_ns <= deadline_ns) {
          expired_before_.fetch_add(1, std::memory_order_relaxed);
          return PutStatus::expired;
        }
        status = PutStatus::timed_out;
      }
    }
  }
  if (status != PutStatus::stored) rejected_.fetch_add(1, std::memory_order_relaxed);
  return status;
}

std::uint32_t Mailbox::put_batch(const Message* messages, std::uint32_t count) {
  std::uint32_t stored = 0;
  while (stored < count) {
    const auto band = static_cast<std::uint32_t>(messages[stored].band());
    if (bands_[band].try_put(Envelope{messages[stored], no_deadline, 0}) != PutStatus::stored) break;
    ++stored;
  }
  if (stored != 0) messages_.ring();
  return stored;
}

// Not expired: a message that outlived its time is counted and the next one taken.
bool Mailbox::take_from(Envelope& envelope, std::uint32_t band) {
  BandRing& ring = bands_[band];
  while (ring.has_message()) {
    // Before it is taken: who sees the message gone sees that the reader is at work.
    reader_waits_.store(false, std::memory_order_relaxed);
    if (ring.try_get(envelope) != GetStatus::taken) return false;
    if (!is_expired(envelope)) return true;
    count_expired(envelope);
  }
  return false;
}

bool Mailbox::is_expired(const Envelope& envelope) const {
  return envelope.expires_ns != no_deadline && messages_.now_ns() >= envelope.expires_ns;
}

void Mailbox::count_expired(const Envelope& envelope) {
  expired_.store(expired_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (options_.on_expired) options_.on_expired(envelope.message);
  room_.ring();
}

bool Mailbox::peek_into(Envelope& envelope, std::uint32_t band) {
  BandRing& ring = bands_[band];
  while (ring.peek(envelope)) {
    if (!is_expired(envelope)) return true;
    // Where writers overwrite, what is taken may be another message: it is left to try_take.
    if (ring.overwrites || ring.try_get(envelope) != GetStatus::taken) return false;
    count_expired(envelope);
  }
  return false;
}

bool Mailbox::peek(Envelope& envelope) {
  const std::uint32_t gate = gate_.load(std::memory_order_acquire);
  if ((gate & 1) != 0) return false;
  if (takes_ + 1 >= options_.fairness_interval && peek_into(envelope, turn_)) return true;
  for (std::uint32_t band = 0; band < band_count; ++band) {
    if (peek_into(envelope, band)) return true;
  }
  return false;
}

GetStatus Mailbox::take_any(Envelope& envelope) {
  bool taken = false;
  if (takes_ + 1 >= options_.fairness_interval && take_from(envelope, turn_)) {
    taken = true;
  } else {
    for (std::uint32_t band = 0; band < band_count && !taken; ++band) taken = take_from(envelope, band);
  }
  if (!taken) {
    reader_waits_.store(true, std::memory_order_release);
    return closed_.load(std::memory_order_acquire) && all_ended() ? GetStatus::closed : GetStatus::empty;
  }
  if (++takes_ >= options_.fairness_interval) {
    takes_ = 0;
    turn_ = (turn_ + 1) % band_count;
    note_peak(depth() + 1);
  }
  room_.ring();
  return GetStatus::taken;
}

GetStatus Mailbox::try_take(Envelope& envelope) {
  const std::uint32_t gate = gate_.load(std::memory_order_acquire);
  if (gate != gate_seen_.load(std::memory_order_relaxed)) gate_seen_.store(gate, std::memory_order_release);
  if ((gate & 1) != 0) return GetStatus::empty;
  return take_any(envelope);
}

GetStatus Mailbox::take(Envelope& envelope, std::uint64_t deadline_ns, const std::atomic<bool>* stop) {
  GetStatus status = GetStatus::empty;
  const auto over = [&] {
    if (stop != nullptr && stop->load(std::memory_order_acquire)) {
      status = GetStatus::closed;
      return true;
    }
    status = try_take(envelope);
    return status != GetStatus::empty;
  };
  return messages_.wait(over, deadline_ns) ? status : GetStatus::timed_out;
}

std::uint64_t Mailbox::clear(const std::function<void(const Message&)>& each) {
  std::uint64_t cleared = 0;
  Envelope envelope;
  for (std::uint32_t band = 0; band < band_count; ++band) {
    BandRing& ring = bands_[band];
    for (;;) {
      const GetStatus status = ring.try_get(envelope);
      if (status == GetStatus::taken) {
        ++cleared;
        if (each) each(envelope.message);
      } else if (status == GetStatus::closed || !is_closed()) {
        break;
      } else {
        HostAtomics::pause();  // a writer has its ticket and is about to finish
      }
    }
  }
  room_.ring_always();
  return cleared;
}

bool Mailbox::set_gate(bool open, std::uint64_t deadline_ns) {
  std::uint32_t gate = gate_.load(std::memory_order_relaxed);
  if (open == ((gate & 1) == 0)) return true;
  gate_.store(++gate, std::memory_order_release);
  messages_.ring_always();
  if (options_.schedule != nullptr) return true;  // nobody runs while this is called
  for (std::uint32_t look = 0; gate_seen_.load(std::memory_order_acquire) != gate; ++look) {
    if (look < 1000) {
      HostAtomics::pause();
      continue;
    }
    if (messages_.now_ns() >= deadline_ns) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

void Mailbox::close() {
  for (std::uint32_t band = 0; band < band_count; ++band) bands_[band].close();
  closed_.store(true, std::memory_order_release);
  wake();
}

void Mailbox::wake() {
  messages_.ring_always();
  room_.ring_always();
}

bool Mailbox::all_ended() const {
  return std::all_of(bands_.get(), bands_.get() + band_count, [](const BandRing& ring) { return ring.ended(); });
}

void Mailbox::note_peak(std::uint64_t depth) {
  std::uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (depth > peak && !peak_.compare_exchange_weak(peak, depth, std::memory_order_relaxed)) {
  }
}

std::uint64_t Mailbox::depth() const {
  std::uint64_t sum = 0;
  for (std::uint32_t band = 0; band < band_count; ++band) sum += bands_[band].depth();
  return sum;
}

std::uint64_t Mailbox::depth(Band band) const {
  return bands_[static_cast<std::uint32_t>(band)].depth();
}

LossCounters Mailbox::losses() const {
  LossCounters losses;
  losses.rejected = rejected_.load(std::memory_order_relaxed);
  losses.dropped_new = dropped_new_.load(std::memory_order_relaxed);
  losses.expired = expired_.load(std::memory_order_relaxed) + expired_before_.load(std::memory_order_relaxed);
  for (std::uint32_t band = 0; band < band_count; ++band) losses.dropped_oldest += bands_[band].over.lost();
  return losses;
}

}  // namespace cingulum::ring
