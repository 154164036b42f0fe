// Numbered messages by the million over the four paths of the rings, each checked by who receives it: host to actor,
// actor to host, actor to actor, many to one. Full and empty phases, pauses, deactivations, failures with
// restart, and the whole group terminated, by drain or discard, and launched again in the middle; every few seconds the
// whole grid goes and another comes, so that no kernel runs longer than its 20 s. Prints one line for each path and
// ends with 1 when a count is wrong.
//   ring_soak --device cpu|emulated|cuda [--messages N] [--groups N] [--paths a,b] [--seconds N] [--neighbour] [--seed
//   N]
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <shared_mutex>
#include <thread>

#include "ring/soak/neighbour.hpp"
#include "ring/soak/soak_place.hpp"

namespace cingulum::ring::soak {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds grid_limit = 20s;
constexpr std::uint64_t silence_ns = 10'000'000'000;  // nothing moves for so long: something is stuck

struct Settings {
  std::string device = "cpu";
  std::uint64_t messages = 1'000'000;
  std::uint32_t groups = 4;
  std::uint32_t seconds = 120;  // for each path
  std::uint32_t round_seconds = 8;
  std::uint64_t seed = 1;
  bool neighbour = false;
  std::vector<std::string> paths = {"host-actor", "actor-host", "actor-actor", "many-one"};
};

// Told to end (a time limit from outside): the path that runs is drained and its line printed, the others are left out.
volatile std::sig_atomic_t is_interrupted = 0;

// What a group of one path consists of.
struct Shape {
  std::string name;
  std::uint32_t sources = 0;       // actors that make messages
  std::uint32_t host_senders = 0;  // threads that do
  bool actor_sink = true;          // else this program receives
};
Result<Shape> shape_of(std::string_view path) {
  if (path == "host-actor") return Shape{"host to actor", 0, 1, true};
  if (path == "actor-host") return Shape{"actor to host", 1, 0, false};
  if (path == "actor-actor") return Shape{"actor to actor", 1, 0, true};
  if (path == "many-one") return Shape{"many to one", 3, 2, true};
  return fail(ErrorKind::invalid_argument, "no path '{}' (paths: host-actor, actor-host, actor-actor, many-one)", path);
}

// What happened to all groups of a path, over all rounds.
struct Sums {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> taken{0};
  std::atomic<std::uint64_t> lost{0};  // and not counted by anybody
  std::atomic<std::uint64_t> duplicated{0};
  std::atomic<std::uint64_t> reordered{0};
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> dropped{0};     // by a discarding terminate, and counted by it
  std::atomic<std::uint64_t> miscounted{0};  // failures, dead letters, drained: what telemetry says wrongly
  std::atomic<std::uint64_t> deactivations{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::uint64_t> restarts{0};
  std::mutex mutex;
  std::vector<std::string> problems;

  void complain(std::string text) {
    const std::lock_guard lock(mutex);
    if (problems.size() < 10) problems.push_back(std::move(text));
  }
  [[nodiscard]] bool clean() const {
    return lost == 0 && duplicated == 0 && reordered == 0 && torn == 0 && miscounted == 0 && problems.empty();
  }
};

// Messages that are still to be made, shared by all groups: who is faster makes more.
class Budget {
 public:
  explicit Budget(std::uint64_t messages) : left_(messages) {}
  std::uint32_t take(std::uint32_t wanted) {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    for (;;) {
      const auto take = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, wanted));
      if (take == 0 || left_.compare_exchange_weak(left, left - take, std::memory_order_relaxed)) return take;
    }
  }
  // Taken, but never made: the actor that was asked has ended before.
  void give_back(std::uint64_t messages) { left_.fetch_add(messages, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> left_;
};

// What outlasts a grid.
struct Saved {
  SinkLedger sink;
  std::vector<SenderLedger> senders;
};

class Group {
 public:
  Group(Place& place, const Shape& shape, const Settings& settings, std::uint32_t index, std::uint32_t round,
        Saved& saved, Budget& budget, Sums& sums)
      : place_(place),
        shape_(shape),
        index_(index),
        saved_(saved),
        budget_(budget),
        sums_(sums),
        random_(settings.seed * 1000003 + index * 7919 + round) {
    // Small rings wrap and fill; large ones carry streams.
    capacity_ = index % 3 == 0 ? 64 : index % 3 == 1 ? 1024 : 4096;
    kind_ = index % 2 == 0 ? RingKind::bulk : RingKind::fast;
    // Larger rings and devices are faster: what happens in between happens after more messages.
    chaos_interval_ = settings.device == "cuda" ? 1'000'000 : 20'000;
  }

  Status prepare() {
    const std::uint32_t count = shape_.sources + shape_.host_senders;
    if (saved_.senders.empty()) saved_.senders.resize(count);
    CGL_TRY_ASSIGN(sink_memory_, place_.memory(sizeof(SinkLedger)));
    std::memcpy(sink_memory_.host, &saved_.sink, sizeof(SinkLedger));
    for (std::uint32_t i = 0; i < count; ++i) {
      Sender& sender = senders_.emplace_back();
      CGL_TRY_ASSIGN(sender.ledger, place_.memory(sizeof(SenderLedger)));
      std::memcpy(sender.ledger.host, &saved_.senders[i], sizeof(SenderLedger));
      CGL_TRY_ASSIGN(sender.words, place_.memory(pool_size * buffer_words * 8));
      CGL_TRY_ASSIGN(sender.handles, place_.memory(pool_size * sizeof(BufferHandle)));
      auto* const handles = reinterpret_cast<BufferHandle*>(sender.handles.host);
      for (std::uint32_t k = 0; k < pool_size; ++k) {
        const std::uint64_t offset = std::uint64_t{k} * buffer_words * 8;
        CGL_TRY_ASSIGN(handles[k],
                       place_.buffers().add_borrowed(sender.words.device + offset, buffer_words * 8, 1, {}));
        if (handles[k].slot >= host_words_.size()) host_words_.resize(handles[k].slot + 1);
        host_words_[handles[k].slot] = {handles[k].generation,
                                        reinterpret_cast<std::uint64_t*>(sender.words.host + offset)};
      }
    }
    return start();
  }

  // By a thread of its own: traffic until the budget is gone or the time is over, then everything is drained.
  void run(std::uint64_t until_ns) {
    std::vector<std::thread> threads;
    for (std::uint32_t i = shape_.sources; i < senders_.size(); ++i) {
      if (i > shape_.sources) threads.emplace_back([this, i, until_ns] { send_from_host(i, until_ns, false); });
    }
    if (shape_.host_senders != 0 && shape_.sources == 0) {
      send_from_host(shape_.sources, until_ns, true);
    } else {
      if (shape_.host_senders != 0) {
        threads.emplace_back([this, until_ns] { send_from_host(shape_.sources, until_ns, false); });
      }
      drive_sources(until_ns);
    }
    for (std::thread& thread : threads) thread.join();
    end(Termination::drain(10s));
    std::memcpy(&saved_.sink, sink_memory_.host, sizeof(SinkLedger));
    for (std::size_t i = 0; i < senders_.size(); ++i) {
      std::memcpy(&saved_.senders[i], senders_[i].ledger.host, sizeof(SenderLedger));
    }
  }
  [[nodiscard]] bool is_stuck() const { return stuck_; }

 private:
  struct Sender {
    MappedMemory ledger;
    MappedMemory words;
    MappedMemory handles;
    ActorHandle actor;          // of a source
    std::uint64_t poisons = 0;  // given to the present actor
    std::uint64_t asked = 0;    // of the present actor
    std::uint64_t made_before = 0;

    // As the side sees it that writes.
    [[nodiscard]] Pool pool(bool on_host) const {
      return {reinterpret_cast<std::uint64_t*>(on_host ? words.host : words.device),
              reinterpret_cast<const BufferHandle*>(on_host ? handles.host : handles.device)};
    }
    [[nodiscard]] SenderLedger& on_host() const { return *reinterpret_cast<SenderLedger*>(ledger.host); }
  };

  [[nodiscard]] ActorOptions options() const {
    ActorOptions made;
    made.inbox_capacity = made.outbox_capacity = capacity_;
    made.restart.kind = RestartKind::limited;
    made.restart.max_restarts = 1u << 30;
    made.restart.back_off = 10us;
    made.restart.max_back_off = 100us;
    made.stall_limit = 5s;
    return made;
  }
  [[nodiscard]] std::string name_of(std::string_view what, std::size_t number) const {
    return fmt::format("{} {}.{}", what, index_, number);
  }

  Status start() {
    if (shape_.actor_sink) {
      CGL_TRY_ASSIGN(sink_, place_.launch(name_of("sink", 0), Sink{reinterpret_cast<SinkLedger*>(sink_memory_.device)},
                                          kind_, options()));
      sink_poisons_ = 0;
    }
    for (std::uint32_t i = 0; i < shape_.sources; ++i) {
      Sender& sender = senders_[i];
      ActorOptions own = options();
      own.inbox_capacity = 16;  // of requests for messages
      const Source body{reinterpret_cast<SenderLedger*>(sender.ledger.device), sender.pool(false), i};
      CGL_TRY_ASSIGN(sender.actor, place_.launch(name_of("source", i), body, kind_, own));
      sender.poisons = 0;
      sender.asked = 0;
      sender.made_before = sender.on_host().next;
      if (sink_) CGL_TRY(sender.actor->wire(0, {sink_}));
    }
    if (sink_) CGL_TRY(sink_->activate());
    for (std::uint32_t i = 0; i < shape_.sources; ++i) CGL_TRY(senders_[i].actor->activate());
    sent_at_start_ = 0;
    for (const Sender& sender : senders_) sent_at_start_ += sender.on_host().next;
    return {};
  }

  // Waits until every failure that was asked for has happened and its restart is done.
  void settle(Actor& actor, std::uint64_t poisons) {
    const std::uint64_t deadline = steady_now_ns() + silence_ns;
    while (actor.telemetry().restarts < poisons && steady_now_ns() < deadline && !stuck_) receive_some();
    const ActorTelemetry telemetry = actor.telemetry();
    sums_.failures += telemetry.failures;
    if (telemetry.failures != poisons || telemetry.restarts != poisons || telemetry.loss.dead_letters != poisons) {
      ++sums_.miscounted;
      sums_.complain(fmt::format("{}: {} failures asked for, {} counted, {} restarts, {} dead letters", actor.name(),
                                 poisons, telemetry.failures, telemetry.restarts, telemetry.loss.dead_letters));
    }
  }

  // Ends all actors in the order of the flow and settles the accounts of what they had.
  void end(const Termination& how) {
    const auto terminate = [&](ActorHandle& actor, std::uint64_t poisons, const Termination& mode) -> std::uint64_t {
      settle(*actor, poisons);
      auto report = place_.runtime().terminate(actor->name(), mode);
      if (!report) {
        sums_.complain(report.error().message());
        stuck_ = true;
        return 0;
      }
      if (mode.mode == Termination::Mode::drain && report->dropped != 0) {
        ++sums_.miscounted;
        sums_.complain(fmt::format("{}: drained, but {} dropped", actor->name(), report->dropped));
      }
      if (actor->telemetry().loss.discarded != report->dropped) {
        ++sums_.miscounted;
        sums_.complain(fmt::format("{}: {} dropped, {} discarded", actor->name(), report->dropped,
                                   actor->telemetry().loss.discarded));
      }
      return report->dropped;
    };
    std::uint64_t refused = 0;
    for (std::uint32_t i = 0; i < shape_.sources; ++i) {
      Sender& sender = senders_[i];
      // What a source drops are requests to make messages: those were never made.
      static_cast<void>(terminate(sender.actor, sender.poisons, how));
      budget_.give_back(sender.asked - (sender.on_host().next - sender.made_before));
      if (!shape_.actor_sink) {
        drain_output(*sender.actor);
        // A bulk outbox takes messages before it has room for them; elsewhere the source learns of a failed send and
        // repeats it.
        if (place_.is_resident() && kind_ == RingKind::bulk) refused += sender.actor->telemetry().refused;
      }
      sender.actor.reset();
    }
    std::uint64_t dropped = 0;
    if (sink_) {
      // Messages between actors are drained in any case: only what the host sent is discarded.
      const bool discards = how.mode == Termination::Mode::discard && shape_.sources == 0;
      dropped = terminate(sink_, sink_poisons_, discards ? how : Termination::drain(10s));
      sink_.reset();
    }
    account(dropped + refused);
  }

  // After the end of all actors: what was made since the start of this group's actors is taken, or dropped and counted.
  void account(std::uint64_t dropped) {
    const auto& ledger = *reinterpret_cast<const SinkLedger*>(sink_memory_.host);
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t reordered = 0;
    for (const Sender& sender : senders_) sent += sender.on_host().next;
    for (const Tally& tally : ledger.senders) {
      taken += tally.taken;
      duplicated += tally.duplicated;
      reordered += tally.reordered;
    }
    const std::uint64_t torn = ledger.torn + ledger.strange;
    sums_.sent += sent - sent_at_start_;
    sums_.taken += taken - taken_before_;
    sums_.duplicated += duplicated - duplicated_before_;
    sums_.reordered += reordered - reordered_before_;
    sums_.torn += torn - torn_before_;
    sums_.dropped += dropped;
    const std::uint64_t expected = sent - sent_at_start_ - dropped;
    const std::uint64_t got = taken - taken_before_ + (torn - torn_before_);
    sums_.lost += expected > got ? expected - got : 0;
    if (got > expected) {
      ++sums_.miscounted;
      sums_.complain(
          fmt::format("group {}: {} sent, {} dropped by count, {} taken", index_, sent - sent_at_start_, dropped, got));
    }
    remember();
  }
  void remember() {
    const auto& ledger = *reinterpret_cast<const SinkLedger*>(sink_memory_.host);
    taken_before_ = duplicated_before_ = reordered_before_ = 0;
    for (const Tally& tally : ledger.senders) {
      taken_before_ += tally.taken;
      duplicated_before_ += tally.duplicated;
      reordered_before_ += tally.reordered;
    }
    torn_before_ = ledger.torn + ledger.strange;
  }

 public:
  // What an earlier grid left in the ledgers is not counted again.
  void begin_accounts() { remember(); }

 private:
  // Now and then: nothing for a while, a deactivation, a failure, or all actors anew.
  void maybe_chaos(std::uint64_t moved) {
    moved_ += moved;
    if (moved_ < next_chaos_) return;
    next_chaos_ = moved_ + 1 + random_() % chaos_interval_;
    switch (random_() % 8) {
      case 0:
      case 1: std::this_thread::sleep_for(std::chrono::microseconds(random_() % 2000)); break;
      case 2:
      case 3:
      case 4: deactivate_one(); break;
      case 5:
      case 6: poison_one(); break;
      default: restart_all(); break;
    }
  }
  [[nodiscard]] Actor& any_actor(std::uint64_t** poisons) {
    const std::uint64_t count = shape_.sources + (sink_ ? 1 : 0);
    const std::uint64_t chosen = random_() % count;
    if (chosen == shape_.sources) {
      *poisons = &sink_poisons_;
      return *sink_;
    }
    *poisons = &senders_[chosen].poisons;
    return *senders_[chosen].actor;
  }
  void deactivate_one() {
    std::uint64_t* unused = nullptr;
    Actor& actor = any_actor(&unused);
    // A body that waits for room stands at its gate only when somebody reads.
    if (!actor.deactivate(shape_.actor_sink ? 20ms : 1ms)) return;  // it fails and restarts just now
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 500));
    if (const Status again = actor.reactivate(); !again) sums_.complain(again.error().message());
    ++sums_.deactivations;
  }
  void poison_one() {
    std::uint64_t* poisons = nullptr;
    Actor& actor = any_actor(&poisons);
    if (actor.try_send(make_message(Poison{})) == PutStatus::stored) ++*poisons;
  }
  void restart_all() {
    const std::unique_lock lock(actors_mutex_);
    end(random_() % 2 == 0 ? Termination::drain(10s) : Termination::discard());
    if (stuck_) return;
    if (const Status started = start(); !started) {
      sums_.complain(started.error().message());
      stuck_ = true;
    }
    ++sums_.restarts;
  }

  [[nodiscard]] bool is_over(std::uint64_t until_ns) const {
    return stuck_ || is_interrupted != 0 || steady_now_ns() >= until_ns;
  }

  void send_from_host(std::uint32_t number, std::uint64_t until_ns, bool drives) {
    Sender& sender = senders_[number];
    const Pool pool = sender.pool(true);
    std::uint64_t& next = sender.on_host().next;
    std::vector<Message> batch(256);
    std::mt19937_64 random(number + index_ * 31);
    while (!is_over(until_ns)) {
      const std::uint32_t count = budget_.take(1 + static_cast<std::uint32_t>(random() % batch.size()));
      if (count == 0) return;
      for (std::uint32_t i = 0; i < count; ++i) batch[i] = make(number, next + i, pool, true);
      std::uint64_t last_ns = steady_now_ns();
      for (std::uint32_t put = 0; put < count;) {
        std::uint32_t stored = 0;
        {
          // Another thread may end and start the actors meanwhile.
          std::shared_lock lock(actors_mutex_, std::defer_lock);
          if (!drives) lock.lock();
          if (stuck_) return;
          stored = Place::put_some(*sink_, std::span(batch).subspan(put, count - put));
          next += stored;
        }
        put += stored;
        if (stored != 0) {
          last_ns = steady_now_ns();
        } else if (steady_now_ns() - last_ns > silence_ns) {
          stuck("no room");
          return;
        } else {
          std::this_thread::yield();
        }
      }
      if (drives) {
        maybe_chaos(count);
      } else if (random() % 4096 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      }
    }
  }

  void drive_sources(std::uint64_t until_ns) {
    std::uint64_t last_ns = steady_now_ns();
    std::uint32_t turn = 0;
    std::uint64_t promised = 0;  // taken from the budget, not yet asked for
    while (!is_over(until_ns)) {
      std::uint64_t moved = receive_some();
      if (promised == 0) promised = budget_.take(messages_per_go);
      if (promised != 0) {
        Sender& source = senders_[turn++ % shape_.sources];
        if (source.actor->try_send(make_message(Go{promised})) == PutStatus::stored) {
          moved += promised;
          source.asked += promised;
          promised = 0;
        }
      } else if (budget_.left() == 0) {
        break;
      }
      if (moved != 0) {
        last_ns = steady_now_ns();
        maybe_chaos(moved);
      } else if (steady_now_ns() - last_ns > silence_ns) {
        stuck("no source takes a request");
      } else {
        std::this_thread::yield();
      }
    }
    budget_.give_back(promised);
  }
  void stuck(std::string_view what) {
    sums_.complain(fmt::format("group {}: {} for 10 s", index_, what));
    stuck_ = true;
  }

  // Takes and checks what has come to the host; on a path that ends at an actor there is nothing to take.
  std::uint32_t receive_some() {
    if (shape_.actor_sink) {
      std::this_thread::yield();
      return 0;
    }
    return receive_from(*senders_[0].actor);
  }
  std::uint32_t receive_from(Actor& source) {
    const std::uint32_t taken = Place::take_some(source, got_);
    auto& ledger = *reinterpret_cast<SinkLedger*>(sink_memory_.host);
    for (std::uint32_t i = 0; i < taken; ++i) {
      check(got_[i], ledger, [&](BufferHandle handle) -> void* {
        if (handle.slot >= host_words_.size() || host_words_[handle.slot].generation != handle.generation)
          return nullptr;
        return host_words_[handle.slot].words;
      });
    }
    return taken;
  }
  void drain_output(Actor& source) {
    while (receive_from(source) != 0) {
    }
  }

  struct HostWords {
    std::uint32_t generation = 0;
    std::uint64_t* words = nullptr;
  };

  Place& place_;
  const Shape shape_;
  const std::uint32_t index_;
  Saved& saved_;
  Budget& budget_;
  Sums& sums_;
  std::mt19937_64 random_;
  std::uint32_t capacity_ = 64;
  RingKind kind_ = RingKind::fast;
  std::uint64_t chaos_interval_ = 1;
  MappedMemory sink_memory_;
  std::vector<Sender> senders_;
  std::vector<HostWords> host_words_;  // by slot
  std::shared_mutex actors_mutex_;     // writer: ends and starts the actors
  ActorHandle sink_;
  std::uint64_t sink_poisons_ = 0;
  std::vector<Message> got_ = std::vector<Message>(256);
  std::uint64_t sent_at_start_ = 0;
  std::uint64_t taken_before_ = 0;
  std::uint64_t duplicated_before_ = 0;
  std::uint64_t reordered_before_ = 0;
  std::uint64_t torn_before_ = 0;
  std::uint64_t moved_ = 0;
  std::uint64_t next_chaos_ = 1000;
  std::atomic<bool> stuck_{false};
};

// "VmRSS" or "Threads" of /proc/self/status.
std::uint64_t process_number(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
  }
  return 0;
}

Result<bool> soak_path(const Settings& settings, std::string_view path) {
  CGL_TRY_ASSIGN(const Shape shape, shape_of(path));
  Sums sums;
  Budget budget(settings.messages);
  std::vector<Saved> saved(settings.groups);
  const auto start = std::chrono::steady_clock::now();
  std::uint32_t rounds = 0;
  std::uint64_t kernels = 0;
  std::uint64_t memory_after_first = 0;
  bool stuck = false;
  while (budget.left() != 0 && !stuck && is_interrupted == 0 &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(settings.seconds)) {
    std::unique_ptr<Neighbour> neighbour;
    if (settings.neighbour) {
      std::string problem;
      neighbour = make_neighbour(problem);
      if (!neighbour) return fail(ErrorKind::device, "kernels beside the actors: {}", problem);
    }
    const std::uint32_t seats = settings.groups * (shape.sources + (shape.actor_sink ? 1 : 0));
    CGL_TRY_ASSIGN(const auto place, Place::open(settings.device, seats, grid_limit));
    if (neighbour) neighbour->start();
    const std::uint64_t until =
        steady_now_ns() + std::min<std::uint64_t>(settings.round_seconds, settings.seconds) * 1'000'000'000u;
    std::vector<std::unique_ptr<Group>> groups;
    for (std::uint32_t i = 0; i < settings.groups; ++i) {
      groups.push_back(std::make_unique<Group>(*place, shape, settings, i, rounds, saved[i], budget, sums));
      CGL_TRY(groups.back()->prepare());
      groups.back()->begin_accounts();
    }
    std::vector<std::thread> threads;
    for (const auto& group : groups) threads.emplace_back([&group, until] { group->run(until); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& group : groups) stuck = stuck || group->is_stuck();
    groups.clear();
    if (neighbour) {
      kernels += neighbour->kernels();
      neighbour.reset();
    }
    if (const Status closed = place->close(); !closed) sums.complain(closed.error().message());
    if (++rounds == 1) memory_after_first = process_number("VmRSS:");
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::uint64_t taken = sums.taken;
  if (taken + sums.dropped < settings.messages && !stuck) {
    sums.complain(fmt::format("only {} of {} messages within {} s", taken, settings.messages, settings.seconds));
  }
  fmt::print(
      "{:<15} {:>11} messages in {:6.1f} s, {} groups, {} grids, {} deactivations, {} failures, {} restarts{}: {} "
      "lost, "
      "{} duplicated, {} reordered, {} torn; {} discarded and counted; memory {} -> {} MB\n",
      shape.name, taken, seconds, settings.groups, rounds, sums.deactivations.load(), sums.failures.load(),
      sums.restarts.load(), settings.neighbour ? fmt::format(", {} kernels beside", kernels) : "", sums.lost.load(),
      sums.duplicated.load(), sums.reordered.load(), sums.torn.load(), sums.dropped.load(), memory_after_first / 1000,
      process_number("VmRSS:") / 1000);
  for (const std::string& problem : sums.problems) fmt::print("  {}\n", problem);
  std::fflush(stdout);
  return sums.clean();
}

Result<Settings> parse(int count, char** values) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = values[i];
    if (name == "--neighbour") {
      settings.neighbour = true;
      continue;
    }
    if (i + 1 == count) return fail(ErrorKind::invalid_argument, "'{}' needs a value", name);
    const char* const value = values[++i];
    const std::uint64_t number = std::strtoull(value, nullptr, 10);
    if (name == "--device") {
      settings.device = value;
    } else if (name == "--messages") {
      settings.messages = number;
    } else if (name == "--groups") {
      settings.groups = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, number));
    } else if (name == "--seconds") {
      settings.seconds = static_cast<std::uint32_t>(number);
    } else if (name == "--round") {
      settings.round_seconds = static_cast<std::uint32_t>(number);
    } else if (name == "--seed") {
      settings.seed = number;
    } else if (name == "--paths") {
      settings.paths.clear();
      for (std::string_view rest = value; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        settings.paths.emplace_back(rest.substr(0, comma));
        rest.remove_prefix(std::min(rest.size(), comma + 1));
      }
    } else {
      return fail(ErrorKind::invalid_argument, "no option '{}'", name);
    }
  }
  return settings;
}

int run(int count, char** values) {
  const auto settings = parse(count, values);
  if (!settings) {
    fmt::print(stderr, "ring_soak: {}\n", settings.error().message());
    return 2;
  }
  bool clean = true;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { is_interrupted = 1; });
  for (const std::string& path : settings->paths) {
    if (is_interrupted != 0) {
      fmt::print("{}: not run, interrupted\n", path);
      clean = false;
      continue;
    }
    const auto result = soak_path(*settings, path);
    if (!result) fmt::print(stderr, "ring_soak: {}: {}\n", path, result.error().message());
    clean = result && *result && clean;
  }
  fmt::print("{}\n", clean ? "nothing lost, duplicated, reordered or torn" : "WRONG COUNTS");
  return clean ? 0 : 1;
}

}  // namespace
}  // namespace cingulum::ring::soak

int main(int count, char** values) {
  return cingulum::ring::soak::run(count, values);
}
