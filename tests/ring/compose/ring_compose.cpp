// Composes actors at random and holds them against a plain model: wires with and without cycles, restarts, children,
// buffers, reply buffers, several seats, pauses, drains, requests with one and with several answers, thousands of
// launches. Every round draws a graph
// of routers (router.hpp) and a list of things to do with it; the model says which token leaves where, what each
// request is answered with, how often each body fails and what every actor has received. A round that differs prints
// its seed.
//   ring_compose --device cpu|emulated|lanes|cuda [--rounds N] [--seed S] [--lanes L] [--no-child]
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/log.hpp"
#include "ring/actor/reply_buffer.hpp"
#include "ring/compose/compose_place.hpp"

namespace cingulum::ring::testing {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds patience = 30s;
// In one round of so many the runtime gives every number that an actor can have, and goes round.
constexpr std::uint64_t rounds_of_a_crowd = 250;

// What one actor is to have done when all is over.
struct Expected {
  std::uint64_t received = 0;
  std::uint64_t failures = 0;
  std::multiset<std::uint64_t> outputs;
};

class Round {
 public:
  Round(std::uint64_t seed, Runtime& runtime, std::shared_ptr<ResidentGrid> grid, std::shared_ptr<ChildHost> child)
      : seed_(seed), random_(seed * 7919 + 13), runtime_(runtime), grid_(std::move(grid)), child_(std::move(child)) {}

  // Empty: everything was as the model says.
  std::string run() {
    compose();
    if (problem_.empty() && seed_ % rounds_of_a_crowd == 7) let_a_crowd_pass();
    if (problem_.empty()) talk();
    if (problem_.empty()) finish();
    if (!problem_.empty()) static_cast<void>(runtime_.shutdown(Termination::discard(patience)));
    return problem_;
  }

 private:
  struct Member {
    std::string name;
    ActorHandle actor;
    std::vector<std::size_t> wires;
    Expected expected;
    std::multiset<std::uint64_t> outputs;  // outputs_mutex_ held while others than the reader look
    bool in_child = false;
    bool is_paused = false;
    std::uint32_t reply_buffers = compose_reply_buffers;
    std::uint64_t received_by_predecessors = 0;  // in the child: it counts anew after a failure
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool once_in(std::uint64_t n) { return below(n) == 0; }
  void complain(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  void check(const Status& status, const char* what) {
    if (!status) complain(fmt::format("{}: {}", what, status.error().message()));
  }

  void compose() {
    const std::size_t count = 1 + below(grid_ != nullptr ? 5 : 6);
    if (grid_ != nullptr) spare_seats_ = grid_->options().seats - static_cast<std::uint32_t>(count);
    has_cycles_ = once_in(3);
    members_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      // Names in another order than the wires.
      members_[i].name = fmt::format("{}-{}", static_cast<char>('a' + below(26)), i);
      for (std::size_t j = 0; j < count; ++j) {
        if ((j > i || has_cycles_) && once_in(3) && members_[i].wires.size() < 3) members_[i].wires.push_back(j);
      }
    }
    for (Member& member : members_) launch(member);
    for (Member& member : members_) {
      if (!problem_.empty()) return;
      for (std::size_t wire = 0; wire < member.wires.size(); ++wire) {
        const auto port = static_cast<std::uint32_t>(1 + wire);
        check(runtime_.fan_out(member.name, port, {members_[member.wires[wire]].name}), "wiring");
      }
    }
    if (child_ != nullptr && once_in(2)) {
      Member alone;
      alone.name = "in-child";
      alone.in_child = true;
      members_.push_back(std::move(alone));
      launch(members_.back());
    }
    for (Member& member : members_) {
      if (problem_.empty()) check(member.actor->activate(), "activating");
    }
  }

  void launch(Member& member) {
    if (!problem_.empty()) return;
    ActorOptions options;
    // In a cycle of full inboxes everybody would wait for everybody: each holds all tokens of a round. (Of a grid the
    // wires do, since inboxes are the host's.)
    const std::uint32_t small = 1u << below(7);
    options.inbox_capacity = !has_cycles_ ? small : grid_ != nullptr ? 256 : 2048;
    options.outbox_capacity = 1u << below(6);
    options.restart.kind = RestartKind::limited;
    options.restart.max_restarts = 1000;
    options.restart.back_off = 1us;
    options.restart.max_back_off = 1ms;
    options.stall_limit = 60s;  // machines that share their cores
    options.waiting.spins = 100;
    const RingKind kind = once_in(2) ? RingKind::fast : RingKind::bulk;
    if (member.in_child) {
      member.reply_buffers = 0;  // they do not leave their process
    } else if (grid_ == nullptr) {
      member.reply_buffers = 1u << below(3);
      options.reply_buffers = member.reply_buffers;
      options.reply_buffer_bytes = reply_words * sizeof(std::uint64_t);
    } else if (kind == RingKind::fast) {  // those of several seats have no others
      options.seats = static_cast<std::uint32_t>(1 + below(1 + spare_seats_));
      spare_seats_ -= options.seats - 1;
    }
    const Router router{static_cast<std::uint32_t>(member.wires.size())};
    Result<ActorHandle> launched =
        member.in_child    ? child_->launch(runtime_, member.name, "router", router, kind, options)
        : grid_ != nullptr ? grid_->launch(runtime_, member.name, "router", router, kind, options)
                           : runtime_.launch(member.name, router, options);
    if (launched) {
      member.actor = *launched;
    } else {
      complain("launching: " + launched.error().message());
    }
  }

  // The way of a token that is put into `at`: every actor that it meets has received it. Answers the last.
  std::size_t follow(std::size_t at, const Token& token) {
    for (std::uint32_t hops = token.hops;; --hops) {
      ++members_[at].expected.received;
      if (hops == 0 || members_[at].wires.empty()) return at;
      const std::vector<std::size_t>& wires = members_[at].wires;
      at = wires[wire_of(token.id, hops, static_cast<std::uint32_t>(wires.size()))];
    }
  }

  void talk() {
    // Outputs are read while the host does other things.
    std::atomic<bool> stop{false};
    std::thread reader([&] {
      while (!stop) {
        for (Member& member : members_) read_outputs(member);
        std::this_thread::sleep_for(100us);
      }
    });
    const std::uint64_t steps = 5 + below(60);
    for (std::uint64_t step = 0; step < steps && problem_.empty(); ++step) {
      const std::size_t at = below(members_.size());
      switch (below(13)) {
        case 0:
        case 1:
        case 2: send_plain(at); break;
        case 3:
        case 4: request(at); break;
        case 5: stream(at); break;
        case 6: members_[at].in_child ? end_in_child(at) : fail(at); break;
        case 7: pause(at); break;
        case 8: ask_buffer(at); break;
        case 9: gather(at); break;
        case 10: ask_large(at); break;
        case 11: fail_with_reply(at); break;
        default: send_many(at); break;
      }
      // Somebody who is paused would keep those who send to him waiting.
      if (once_in(4)) resume_all();
    }
    resume_all();
    settle_all();
    stop = true;
    reader.join();
    // What is queued is drained, behind gates and behind failures as well.
    for (std::uint64_t i = below(4); i > 0 && problem_.empty(); --i) {
      pause(below(members_.size()));
      send_batch_at(below(members_.size()), once_in(2) ? 3 : 0);
    }
  }

  Token token(TokenKind kind) {
    Token made;
    made.id = next_id_++;
    made.hops = static_cast<std::uint32_t>(below(6));
    made.kind = kind;
    return made;
  }
  void send_plain(std::size_t at) {
    resume_all();
    const Token made = token(TokenKind::plain);
    check(members_[at].actor->send(make_message(made), {.timeout = patience}), "sending");
    members_[follow(at, made)].expected.outputs.insert(made.id);
  }
  void send_many(std::size_t at) {
    resume_all();
    send_batch_at(at, 0);
  }
  // Without waiting. One token of `failing_share` makes a body fail (0: none); not in a child, whose queue would go.
  void send_batch_at(std::size_t at, std::uint64_t failing_share) {
    std::vector<Message> batch;
    std::vector<Token> tokens;
    for (std::uint64_t i = 1 + below(20); i > 0; --i) {
      const bool fails = failing_share != 0 && !members_[at].in_child && once_in(failing_share);
      tokens.push_back(token(fails ? TokenKind::failing : TokenKind::plain));
      batch.push_back(make_message(tokens.back()));
    }
    const std::uint32_t stored = members_[at].actor->send_batch(batch);
    for (std::uint32_t i = 0; i < stored; ++i) {
      Expected& last = members_[follow(at, tokens[i])].expected;
      if (tokens[i].kind == TokenKind::failing) {
        ++last.failures;
      } else {
        last.outputs.insert(tokens[i].id);
      }
    }
  }

  struct PendingAnswer {
    PendingReply reply;
    Token token;
  };
  void request(std::size_t at) {
    resume_all();
    Token made = token(TokenKind::request);
    made.count = below(1000);
    Result<PendingReply> pending =
        runtime_.request_later(*members_[at].actor, make_message(made), {.timeout = patience});
    if (!pending) return complain("requesting: " + pending.error().message());
    static_cast<void>(follow(at, made));
    pending_.push_back({std::move(*pending), made});
    if (once_in(2)) {
      settle(pending_.back());
      pending_.pop_back();
    }
  }
  void settle_all() {
    for (PendingAnswer& pending : pending_) settle(pending);
    pending_.clear();
  }
  void settle(PendingAnswer& pending) {
    const Result<Message> answer = pending.reply.wait(patience);
    if (!answer) return complain("an answer: " + answer.error().message());
    expect_answer(*answer, pending.token, pending.token.count);
  }
  void expect_answer(const Message& answer, const Token& asked, std::uint64_t part) {
    if (!holds<TokenAnswer>(answer)) return complain("an answer is of another type");
    const auto got = payload<TokenAnswer>(answer);
    if (got.id != asked.id || got.part != part || got.value != token_hash(asked.id + part)) {
      complain(fmt::format("token {} part {} was answered with token {} part {}", asked.id, part, got.id, got.part));
    }
  }
  void stream(std::size_t at) {
    resume_all();
    Token made = token(TokenKind::stream);
    made.count = below(30);
    StreamOptions options;
    options.window = static_cast<std::uint32_t>(1 + below(4));
    options.timeout = patience;
    Result<ReplyStream> stream = runtime_.request_stream(*members_[at].actor, make_message(made), options);
    if (!stream) return complain("asking for a stream: " + stream.error().message());
    static_cast<void>(follow(at, made));
    const std::uint64_t wanted = once_in(3) ? below(made.count + 1) : made.count + 1;
    for (std::uint64_t part = 0; part < wanted && problem_.empty(); ++part) {
      Result<std::optional<Message>> answer = stream->next(patience);
      if (!answer) return complain("a stream: " + answer.error().message());
      if (!*answer) return complain(fmt::format("a stream of {} ended at {}", made.count, part));
      expect_answer(**answer, made, part);
      if ((*answer)->has(mark_more) != (part != made.count)) complain("a part says wrongly whether more follows");
    }
    if (wanted <= made.count) return stream->cancel();
    const Result<std::optional<Message>> end = stream->next(patience);
    if (!end || *end) complain("a stream has no end");
  }
  void fail(std::size_t at, TokenKind kind = TokenKind::failing) {
    resume_all();
    const Token made = token(kind);
    check(members_[at].actor->send(make_message(made), {.timeout = patience}), "sending a failure");
    ++members_[follow(at, made)].expected.failures;
  }
  // The successor of the body finds the buffer again.
  void fail_with_reply(std::size_t at) {
    if (members_[at].reply_buffers != 0) fail(at, TokenKind::failing_with_reply);
  }
  void gather(std::size_t at) {
    resume_all();
    Token made = token(TokenKind::gather);
    made.count = below(300);
    const Result<Message> answer = runtime_.request(*members_[at].actor, make_message(made), patience);
    if (!answer) return complain("gathering: " + answer.error().message());
    static_cast<void>(follow(at, made));
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < made.count; ++i) sum += token_hash(made.id + i);
    if (!holds<TokenAnswer>(*answer) || payload<TokenAnswer>(*answer).value != sum) complain("a sum is wrong");
  }
  void ask_large(std::size_t at) {
    if (members_[at].reply_buffers == 0) return;
    resume_all();
    Token made = token(TokenKind::large);
    made.count = below(12);
    StreamOptions options;
    options.window = static_cast<std::uint32_t>(1 + below(4));
    options.timeout = patience;
    Result<ReplyStream> stream = runtime_.request_stream(*members_[at].actor, make_message(made), options);
    if (!stream) return complain("asking for large answers: " + stream.error().message());
    const std::size_t last = follow(at, made);
    // All but one may be kept for a while; those that are left unread, or are never read, go back by themselves.
    const std::uint64_t most_held = members_[last].reply_buffers - 1;
    std::deque<ReplyBuffer> held;
    const std::uint64_t wanted = once_in(3) ? below(made.count + 1) : made.count;
    for (std::uint64_t part = 0; part < wanted && problem_.empty(); ++part) {
      const Result<std::optional<Message>> answer = stream->next(patience);
      if (!answer) return complain("a large answer: " + answer.error().message());
      if (!*answer || !holds<LargeAnswer>(**answer)) return complain("a large answer is missing");
      Result<ReplyBuffer> buffer = ReplyBuffer::of(**answer);
      if (!buffer) return complain("a reply buffer: " + buffer.error().message());
      expect_words(buffer->as<std::uint64_t>(), made.id, part);
      held.push_back(std::move(*buffer));
      while (held.size() > most_held || (!held.empty() && once_in(2))) held.pop_front();
    }
    if (wanted < made.count) return stream->cancel();
    const Result<std::optional<Message>> end = stream->next(patience);
    if (!end || !*end) return complain("large answers have no end");
    expect_answer(**end, made, made.count);
  }
  void expect_words(std::span<const std::uint64_t> words, std::uint64_t id, std::uint64_t part) {
    if (words.size() != words_of_part(part)) return complain("a reply buffer has another size");
    for (std::uint64_t i = 0; i < words.size(); ++i) {
      if (words[i] != token_hash(id + part * reply_words + i)) return complain("a reply buffer holds other words");
    }
  }
  // The actor in the child fails, or the whole child ends. Its queue goes with it, so it is empty before; what is sent
  // from the moment on that the failure is known waits for its successor.
  void end_in_child(std::size_t at) {
    resume_all();
    settle_all();
    Member& member = members_[at];
    if (once_in(2)) {
      const Token made = token(TokenKind::failing);
      check(member.actor->send(make_message(made), {.timeout = patience}), "sending a failure to the child");
      ++member.expected.received;
    } else {
      // By its answer the actor has done all that came before, and its outputs are on their way.
      Token made = token(TokenKind::request);
      made.hops = 0;
      const Result<Message> answer = runtime_.request(*member.actor, make_message(made), patience);
      if (!answer) return complain("asking the child: " + answer.error().message());
      ++member.expected.received;
      // Counters of a grid are a moment old.
      const std::uint64_t received = member.expected.received - member.received_by_predecessors;
      const bool came = comes_true([&] {
        const std::lock_guard lock(outputs_mutex_);
        return member.outputs.size() == member.expected.outputs.size() &&
               member.actor->telemetry().received == received;
      });
      if (!came) return complain("outputs of the child are missing");
      if (::kill(child_->process(), SIGKILL) != 0) return complain("the child is gone");
    }
    ++member.expected.failures;
    member.received_by_predecessors = member.expected.received;
    if (!comes_true([&] { return member.actor->telemetry().failures == member.expected.failures; })) {
      complain("the child's failure is not told");
    }
  }
  template <class Condition>
  [[nodiscard]] static bool comes_true(const Condition& condition) {
    const std::uint64_t deadline = deadline_from_now(patience);
    while (!condition()) {
      if (steady_now_ns() > deadline) return false;
      std::this_thread::sleep_for(100us);
    }
    return true;
  }

  // While an actor holds a request, so many others come and go that their numbers are given again.
  void let_a_crowd_pass() {
    const std::size_t at = below(members_.size());
    check(members_[at].actor->deactivate(), "deactivating");
    members_[at].is_paused = true;
    Token made = token(TokenKind::request);
    made.hops = 0;
    Result<PendingReply> pending =
        runtime_.request_later(*members_[at].actor, make_message(made), {.timeout = patience});
    if (!pending) return complain("requesting: " + pending.error().message());
    ++members_[at].expected.received;
    ActorOptions small;
    small.inbox_capacity = small.outbox_capacity = 1;
    for (std::uint32_t i = 0; i < 0x10000u && problem_.empty(); ++i) {
      const Result<ActorHandle> passer = runtime_.launch("passer", Router{}, small);
      if (!passer) return complain("launching one of many: " + passer.error().message());
      for (const Member& member : members_) {
        if ((*passer)->number() == member.actor->number()) complain("a number was given twice");
      }
      check(runtime_.terminate("passer", Termination::discard()).map([](const TerminationReport&) {}), "terminating");
    }
    resume_all();
    PendingAnswer answer{std::move(*pending), made};
    settle(answer);
  }

  void pause(std::size_t at) {
    if (members_[at].is_paused) return;
    // An actor whose restart is due may be between two states; that it refuses is no fault.
    members_[at].is_paused = members_[at].actor->deactivate(1ms).has_value();
  }
  void resume_all() {
    for (Member& member : members_) {
      if (member.is_paused) check(member.actor->reactivate(), "reactivating");
      member.is_paused = false;
    }
  }
  void ask_buffer(std::size_t at) {
    resume_all();
    if (members_[at].in_child) return;
    BufferTable& table = grid_ != nullptr ? grid_->buffers() : runtime_.buffers();
    std::uint64_t words[4] = {random_(), random_(), random_(), random_()};
    std::uint64_t* host = words;
    void* device = words;
    if (grid_ != nullptr) {
      if (scratch().host == nullptr) return;
      host = reinterpret_cast<std::uint64_t*>(scratch().host);
      device = scratch().device;
      for (int i = 0; i < 4; ++i) HostAtomics::store_relaxed(host[i], words[i]);
    }
    const Result<BufferHandle> handle = table.add_borrowed(device, sizeof words, 0, {});
    if (!handle) return complain("a buffer: " + handle.error().message());
    const bool is_stale = once_in(3);
    if (is_stale) static_cast<void>(table.release(*handle));
    const BufferToken asked{*handle, next_id_++};
    const Result<Message> answer = runtime_.request(*members_[at].actor, make_message(asked), patience);
    ++members_[at].expected.received;
    if (!is_stale) static_cast<void>(table.release(*handle));
    if (!answer) return complain("asking for a buffer: " + answer.error().message());
    const std::uint64_t expected = is_stale ? stale_buffer : words[asked.id % 4];
    if (!holds<TokenAnswer>(*answer) || payload<TokenAnswer>(*answer).value != expected) {
      complain("a buffer was read wrongly");
    }
  }
  // Once for the grid: its scratch memory is not given back.
  [[nodiscard]] MappedMemory scratch() {
    static std::weak_ptr<ResidentGrid> of;
    static MappedMemory memory;
    if (of.lock() != grid_) {
      of = grid_;
      const Result<MappedMemory> got = grid_->scratch(64);
      memory = got ? *got : MappedMemory{};
    }
    return memory;
  }

  void read_outputs(Member& member) {
    Message messages[16];
    for (;;) {
      const std::uint32_t got = member.actor->receive_batch(messages);
      const std::lock_guard lock(outputs_mutex_);
      for (std::uint32_t i = 0; i < got; ++i) keep_output(member, messages[i]);
      if (got == 0) return;
    }
  }
  void keep_output(Member& member, const Message& message) {
    if (holds<Token>(message)) member.outputs.insert(payload<Token>(message).id);
  }

  void finish() {
    const ShutdownReport report = runtime_.shutdown(Termination::drain(patience));
    for (const std::string& error : report.errors) complain("shutting down: " + error);
    if (report.messages.dropped != 0) complain(fmt::format("{} messages were dropped", report.messages.dropped));
    if (report.cycles.empty() == has_cycle()) complain("cycles are named wrongly");
    for (Member& member : members_) {
      for (;;) {
        const Result<Message> left = member.actor->receive(Nanoseconds::zero());
        if (!left) break;
        keep_output(member, *left);
      }
      const ActorTelemetry telemetry = member.actor->telemetry();
      if (member.outputs != member.expected.outputs) {
        complain(fmt::format("'{}' gave {} outputs, not {} (or others)", member.name, member.outputs.size(),
                             member.expected.outputs.size()));
      }
      if (!member.in_child && telemetry.received != member.expected.received) {
        complain(fmt::format("'{}' received {} messages, not {}", member.name, telemetry.received,
                             member.expected.received));
      }
      if (telemetry.failures != member.expected.failures) {
        complain(fmt::format("'{}' failed {} times, not {}: {}", member.name, telemetry.failures,
                             member.expected.failures, telemetry.last_failure));
      }
      // The message in the body at each failure; of a child that is not known.
      const std::uint64_t dead_letters = member.in_child ? 0 : member.expected.failures;
      if (telemetry.loss.dead_letters != dead_letters) {
        complain(
            fmt::format("'{}' counts {} dead letters, not {}", member.name, telemetry.loss.dead_letters, dead_letters));
      }
    }
  }
  [[nodiscard]] bool has_cycle() const {
    // By walking on: whoever is met again after as many steps as there are actors lies behind a cycle.
    std::set<std::size_t> reached;
    for (std::size_t i = 0; i < members_.size(); ++i) reached.insert(i);
    for (std::size_t step = 0; step <= members_.size(); ++step) {
      std::set<std::size_t> next;
      for (const std::size_t at : reached) next.insert(members_[at].wires.begin(), members_[at].wires.end());
      reached = std::move(next);
    }
    return !reached.empty();
  }

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  Runtime& runtime_;
  const std::shared_ptr<ResidentGrid> grid_;
  const std::shared_ptr<ChildHost> child_;
  bool has_cycles_ = false;
  std::uint32_t spare_seats_ = 0;  // of the grid, when every actor has one
  std::uint64_t next_id_ = 1;
  std::vector<Member> members_;
  std::vector<PendingAnswer> pending_;
  std::mutex outputs_mutex_;
  std::string problem_;
};

struct Options {
  std::string device = "cpu";
  std::uint64_t rounds = 100;
  std::uint64_t seed = 1;
  std::uint32_t lanes = 64;
  bool child = true;
};

int compose(const Options& options) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::shared_ptr<ResidentGrid> grid;
  std::shared_ptr<ChildHost> child;
  const std::uint64_t start_ns = steady_now_ns();
  for (std::uint64_t round = 0; round < options.rounds; ++round) {
    const std::uint64_t seed = options.seed + round;
    // Grids and children serve many rounds: their seats are taken again and again.
    constexpr std::uint64_t rounds_of_a_place = 100;
    if (round % rounds_of_a_place == 0) {
      grid.reset();
      auto opened = open_compose_grid(options.device, options.lanes);
      if (!opened) return std::fprintf(stderr, "ring_compose: %s\n", opened.error().message().c_str()), 1;
      grid = std::move(*opened);
      if (options.child && child == nullptr) {
        auto started = start_compose_child(program, options.device == "emulated" ? "emulated" : "cpu");
        if (!started) return std::fprintf(stderr, "ring_compose: %s\n", started.error().message().c_str()), 1;
        child = std::move(*started);
      }
    }
    auto runtime = Runtime::create();
    if (!runtime) return 1;
    const std::string problem = Round(seed, **runtime, grid, child).run();
    if (!problem.empty()) {
      std::fprintf(stderr, "ring_compose --device %s --seed %llu --rounds 1: %s\n", options.device.c_str(),
                   static_cast<unsigned long long>(seed), problem.c_str());
      return 1;
    }
  }
  std::printf("%s: %llu rounds as the model says, %.1f s\n", options.device.c_str(),
              static_cast<unsigned long long>(options.rounds), static_cast<double>(steady_now_ns() - start_ns) * 1e-9);
  return 0;
}

}  // namespace
}  // namespace cingulum::ring::testing

int main(int count, char** words) {
  using cingulum::ring::testing::Options;
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--no-child") {
      options.child = false;
      continue;
    }
    if (i + 1 == count) return std::fprintf(stderr, "ring_compose: %s needs a value\n", words[i]), 2;
    const std::string value = words[++i];
    if (word == "--serve") return cingulum::ring::testing::serve_compose_parent(value);
    if (word == "--device") {
      options.device = value;
    } else if (word == "--rounds") {
      options.rounds = std::stoull(value);
    } else if (word == "--seed") {
      options.seed = std::stoull(value);
    } else if (word == "--lanes") {
      options.lanes = static_cast<std::uint32_t>(std::stoul(value));
    } else {
      return std::fprintf(stderr, "ring_compose: unknown option %s\n", word.c_str()), 2;
    }
  }
  return cingulum::ring::testing::compose(options);
}
