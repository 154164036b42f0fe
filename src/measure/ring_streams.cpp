#include "measure/ring_streams.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "measure/numbered_message.hpp"
#include "ring/queue/bulk_ring.hpp"

namespace cingulum::measure {
namespace {

using ring::Message;
using Clock = std::chrono::steady_clock;

// Spins, with a yield now and then: on fewer processors than threads the other side must get its turn.
class Patience {
 public:
  void wait() {
    if (++looks_ % 2000 != 0) {
      ring::HostAtomics::pause();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  std::uint32_t looks_ = 0;
};

// One actor's messages, out and in.
class ActorStream {
 public:
  ActorStream(ring::Actor& actor, std::uint64_t count) : actor_(&actor), count_(count) {}

  // What there is room for, and what came; both answer how many messages that were.
  std::uint32_t write() {
    if (sent_ == prepared_ && made_ < count_) {
      prepared_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(out_.size(), count_ - made_));
      for (std::uint32_t i = 0; i < prepared_; ++i) out_[i] = numbered(made_++);
      sent_ = 0;
    }
    if (sent_ == prepared_) return 0;
    const std::uint32_t sent = actor_->send_batch(std::span(out_).subspan(sent_, prepared_ - sent_));
    sent_ += sent;
    return sent;
  }
  Result<std::uint32_t> read() {
    const std::uint32_t got = actor_->receive_batch(in_);
    for (std::uint32_t i = 0; i < got; ++i) CGL_TRY(check_number(in_[i], taken_++));
    return got;
  }
  [[nodiscard]] bool is_written() const { return made_ == count_ && sent_ == prepared_; }
  [[nodiscard]] bool is_read() const { return taken_ == count_; }

 private:
  static constexpr std::size_t batch = 256;

  ring::Actor* actor_;
  std::uint64_t count_;
  std::uint64_t made_ = 0;
  std::uint64_t taken_ = 0;
  std::uint32_t prepared_ = 0;  // of out_
  std::uint32_t sent_ = 0;      // of those
  std::vector<Message> out_ = std::vector<Message>(batch);
  std::vector<Message> in_ = std::vector<Message>(batch);
};

// Calls `move`, which returns how many messages it moved, until done(). Fails when nothing moves for too long or the
// user has asked to stop.
template <class Done, class Move>
Status repeat_until(Done&& done, Move&& move) {
  std::uint32_t idle = 0;
  Clock::time_point since;
  while (!done()) {
    CGL_TRY_ASSIGN(const std::uint32_t moved, move());
    if (moved != 0) {
      idle = 0;
      continue;
    }
    // Seldom, since looking at a clock takes longer than a round without messages.
    if (idle++ % 1024 != 0) continue;
    CGL_TRY(check_interrupt());
    if (idle == 1) {
      since = Clock::now();
    } else if (Clock::now() - since > ring::answer_limit) {
      return fail(ErrorKind::timed_out, "a stream in batches stands still");
    }
  }
  return {};
}

Status write_and_read(std::span<const ring::ActorHandle> actors, std::uint64_t count) {
  std::vector<ActorStream> streams;
  for (const ring::ActorHandle& actor : actors) streams.emplace_back(*actor, count);
  return repeat_until(
      [&] { return std::all_of(streams.begin(), streams.end(), [](const ActorStream& s) { return s.is_read(); }); },
      [&]() -> Result<std::uint32_t> {
        CGL_TRY(check_interrupt());
        std::uint32_t moved = 0;
        for (ActorStream& stream : streams) {
          moved += stream.write();
          CGL_TRY_ASSIGN(const std::uint32_t got, stream.read());
          moved += got;
        }
        return moved;
      });
}

Status write_beside_read(ring::Actor& actor, std::uint64_t count) {
  ActorStream written(actor, count), taken(actor, count);
  Status sent;
  std::thread writer([&] {
    sent =
        repeat_until([&] { return written.is_written(); }, [&]() -> Result<std::uint32_t> { return written.write(); });
  });
  const Status read = repeat_until([&] { return taken.is_read(); }, [&] { return taken.read(); });
  writer.join();
  CGL_TRY(sent);
  return read;
}

// Actors i, i + threads, i + 2 threads, ... by thread i.
Status share_among_threads(std::span<const ring::ActorHandle> actors, std::uint64_t count, std::uint32_t threads) {
  std::vector<Status> results(threads);
  std::vector<std::thread> workers;
  for (std::uint32_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      std::vector<ring::ActorHandle> own;
      for (std::size_t i = t; i < actors.size(); i += threads) own.push_back(actors[i]);
      results[t] = write_and_read(own, count);
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (Status& result : results) CGL_TRY(std::move(result));
  return {};
}

Status call_for_each(std::span<const ring::ActorHandle> actors, std::uint64_t each) {
  // One host thread keeps every actor supplied: up to `window` messages ahead, then half of their answers.
  constexpr std::uint64_t window = 2048;
  std::vector<std::uint64_t> sent(actors.size()), received(actors.size());
  for (std::uint64_t left = each * actors.size(); left > 0;) {
    CGL_TRY(check_interrupt());
    for (std::size_t a = 0; a < actors.size(); ++a) {
      while (sent[a] < each && sent[a] - received[a] < window) {
        const ring::PutStatus put = actors[a]->try_send(numbered(sent[a]));
        if (put == ring::PutStatus::full) break;
        if (put != ring::PutStatus::stored) return fail(ErrorKind::invalid_state, "the stream was closed");
        ++sent[a];
      }
      const std::uint64_t wanted = sent[a] == each ? sent[a] - received[a] : (sent[a] - received[a] + 1) / 2;
      for (std::uint64_t i = 0; i < wanted; ++i) {
        CGL_TRY_ASSIGN(const Message answer, actors[a]->receive(ring::answer_limit));
        CGL_TRY(check_number(answer, received[a]));
        ++received[a];
        --left;
      }
    }
  }
  return {};
}

// `body` moves so many messages.
template <class Body>
Result<std::vector<double>> rates_of(std::uint64_t messages, int repetitions, Body&& body) {
  std::vector<double> rates;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    CGL_TRY(check_interrupt());
    const auto start = Clock::now();
    CGL_TRY(body());
    rates.push_back(static_cast<double>(messages) / seconds_since(start));
  }
  return rates;
}

}  // namespace

Result<std::vector<double>> batch_rates(std::span<const ring::ActorHandle> actors, const Stream& stream) {
  const std::uint64_t each = stream.messages_each;
  return rates_of(each * actors.size(), stream.repetitions, [&]() -> Status {
    if (stream.host.writer_and_reader) return write_beside_read(*actors.front(), each);
    if (stream.host.threads > 1) return share_among_threads(actors, each, stream.host.threads);
    return write_and_read(actors, each);
  });
}

Result<std::vector<double>> call_rates(std::span<const ring::ActorHandle> actors, const Stream& stream) {
  return rates_of(stream.messages_each * actors.size(), stream.repetitions,
                  [&] { return call_for_each(actors, stream.messages_each); });
}

Result<std::vector<double>> bare_ring_rates(const BareStream& stream, const std::function<void()>& begin) {
  return rates_of(stream.messages, stream.repetitions, [&]() -> Status {
    std::vector<Message> slots(stream.capacity);
    ring::RingLine writer_line, reader_line;
    const ring::BulkRingView<Message> view = {slots.data(), &writer_line, &reader_line, stream.capacity};
    const bool one_by_one = stream.batch == 1;
    std::uint64_t got = 0;
    std::thread other([&] {
      if (begin) begin();
      std::vector<Message> taken(stream.batch);
      ring::BulkReader<Message> reader(view, 0, one_by_one ? 1 : stream.capacity / 4);
      for (Patience patience;;) {
        const std::uint32_t now = one_by_one ? (reader.try_get(taken[0]) == ring::GetStatus::taken ? 1 : 0)
                                             : reader.get_batch(taken.data(), stream.batch);
        got += now;
        if (now != 0) continue;
        if (reader.ended()) return;
        patience.wait();
      }
    });
    const std::vector<Message> sent(stream.batch, numbered(1));
    ring::BulkWriter<Message> writer(view);
    Patience patience;
    for (std::uint64_t put = 0; put < stream.messages && !interrupt_requested();) {
      const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(stream.batch, stream.messages - put));
      const std::uint32_t now = one_by_one ? (writer.try_put(sent[0]) == ring::PutStatus::stored ? 1 : 0)
                                           : writer.put_batch(sent.data(), wanted);
      put += now;
      if (now == 0) patience.wait();
    }
    writer.close();
    other.join();
    CGL_TRY(check_interrupt());
    if (got != stream.messages) return fail(ErrorKind::corrupt, "{} of {} messages came", got, stream.messages);
    return {};
  });
}

}  // namespace cingulum::measure
