// The host of a grid whose lanes are fibers, for tests: memory of seats and rings, commands, messages in and out, all
// in one thread and by virtual time. It speaks to the seats as ring/resident/resident_actor.cpp does.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ring/lanes/lane_scheduler.hpp"
#include "ring/lanes/lane_seat.hpp"
#include "ring/queue/bulk_ring.hpp"
#include "ring/queue/fast_ring.hpp"

namespace cingulum::ring::testing {

class LaneGrid {
 public:
  struct Options {
    std::uint64_t seed = 0;
    std::uint32_t seats = 1;
    std::uint32_t lanes = 64;
    std::uint32_t eager_polls = 4;
    std::uint64_t lease_ns = ~std::uint64_t{0} / 4;
    std::uint64_t time_limit_ns = 0;
    std::uint64_t park_after_ns = 0;
  };
  explicit LaneGrid(const Options& options) : options_(options), seats_(options.seats), hosts_(options.seats) {
    for (std::uint32_t i = 0; i < options.seats; ++i) {
      blocks_.push_back(std::make_unique<BlockMemory>());
      // Nobody clears a block's memory, and an actor's state holds what the one before left there.
      std::memset(static_cast<void*>(blocks_.back().get()), 0xa5, sizeof(BlockMemory));
    }
  }

  struct Rings {
    RingKind kind = RingKind::fast;
    std::uint32_t inbox = 16;
    std::uint32_t outbox = 16;
    bool is_bulk_to_fast = false;  // a bulk inbox, but a fast outbox: answer_batch sends one after the other
  };
  // Before the seat is told to run.
  template <class Body>
  void plan(std::uint32_t seat, LaneBody which, const Body& body, const Rings& rings) {
    Host& host = hosts_[seat];
    const std::uint64_t commands = host.commands;
    host = Host{};
    host.commands = commands;
    host.in_kind = rings.kind;
    host.out_kind = rings.is_bulk_to_fast ? RingKind::fast : rings.kind;
    Seat& memory = seats_[seat];
    memory.inbox_writer = memory.inbox_reader = memory.outbox_writer = memory.outbox_reader = {};
    host.in_slots = make_slots(rings.inbox);
    host.out_slots = make_slots(rings.outbox);
    SeatPlan& plan = memory.plan;
    plan = {};
    plan.actor = static_cast<std::uint32_t>(which);
    plan.number = 100 + seat;
    plan.fresh = 1;
    plan.inbox = {host.in_slots, &memory.inbox_writer, &memory.inbox_reader, rings.inbox, host.in_kind};
    plan.outbox = {host.out_slots, &memory.outbox_writer, &memory.outbox_reader, rings.outbox, host.out_kind};
    plan.state = blocks_[seat]->state;
    plan.state_bytes = state_capacity;
    static_assert(sizeof(Body) <= body_capacity);
    std::memcpy(plan.body, &body, sizeof body);
    host.fast_in = FastWriter<Message>(
        {static_cast<FastSlot<Message>*>(host.in_slots), &memory.inbox_writer, &memory.inbox_reader, rings.inbox});
    host.bulk_in = BulkWriter<Message>(
        {static_cast<Message*>(host.in_slots), &memory.inbox_writer, &memory.inbox_reader, rings.inbox});
    const std::uint32_t interval = rings.outbox < 4 ? 1 : rings.outbox / 4;
    host.fast_out = FastReader<Message>(
        {static_cast<FastSlot<Message>*>(host.out_slots), &memory.outbox_writer, &memory.outbox_reader, rings.outbox},
        0, interval);
    host.bulk_out = BulkReader<Message>(
        {static_cast<Message*>(host.out_slots), &memory.outbox_writer, &memory.outbox_reader, rings.outbox}, 0,
        interval);
  }
  // Wires a port of a planned seat; ports in ascending order for each writer.
  void wire(std::uint32_t from, std::uint32_t port, std::uint32_t to, std::uint32_t capacity) {
    lines_.emplace_back();
    lines_.emplace_back();
    const SeatRing ring = {make_slots(capacity), &lines_[lines_.size() - 2], &lines_.back(), capacity, RingKind::fast};
    SeatPlan& writer = seats_[from].plan;
    writer.edges_out[writer.edges_out_count++] = ring;
    for (std::uint32_t p = port + 1; p < port_count + 2; ++p) writer.port_start[p] = writer.edges_out_count;
    SeatPlan& reader = seats_[to].plan;
    reader.edges_in[reader.edges_in_count++] = ring;
  }
  // As the host does when the actor that reads the wire is gone: the n-th that was laid.
  void close_reader_of_wire(std::size_t wire) { lines_[2 * wire + 1].closed = 1; }
  // A buffer that bodies can look up.
  BufferHandle add_buffer(void* memory, std::uint32_t bytes) {
    buffers_.resize(64);
    BufferEntry& entry = buffers_[buffers_used_];
    entry.address = reinterpret_cast<std::uint64_t>(memory);
    entry.generation = 1;
    return {buffers_used_++, 1, bytes};
  }

  // Reply buffers of a planned seat: `count` of `words`, all of them free.
  void add_replies(std::uint32_t seat, std::uint32_t count, std::uint32_t words) {
    Host& host = hosts_[seat];
    Seat& memory = seats_[seat];
    memory.replies_writer = memory.replies_reader = {};
    host.reply_slots.resize(count);
    host.reply_words.resize(std::size_t{count} * words);
    memory.plan.replies = {host.reply_slots.data(), &memory.replies_writer, &memory.replies_reader, count, 0};
    for (std::uint32_t i = 0; i < count; ++i) {
      give_reply(seat, {i, 1, std::uint64_t{words} * 8, 0}, host.reply_words.data() + std::size_t{i} * words);
    }
  }
  void give_reply(std::uint32_t seat, BufferHandle handle, const std::uint64_t* memory) {
    Host& host = hosts_[seat];
    RingLine& line = seats_[seat].replies_writer;
    ReplySlot& slot = host.reply_slots[line.position & (host.reply_slots.size() - 1)];
    slot.handle = handle;
    slot.address = reinterpret_cast<std::uint64_t>(memory);
    ++line.position;
  }
  [[nodiscard]] const std::uint64_t* reply_words(std::uint32_t seat, std::uint32_t slot) const {
    const Host& host = hosts_[seat];
    return host.reply_words.data() + slot * (host.reply_words.size() / host.reply_slots.size());
  }
  // Planned seats become those of one actor, the first of them its first.
  void join_seats(std::uint32_t count) {
    team_memory_.assign(team_bytes(count) / sizeof(TeamLine), TeamLine{});
    auto* const team = reinterpret_cast<Team*>(team_memory_.data());
    for (std::uint32_t i = 0; i < count; ++i) {
      SeatPlan& plan = seats_[i].plan;
      plan.rank = i;
      plan.seats = count;
      plan.team = team;
      plan.state = team_state_;
      if (i != 0) plan.inbox = plan.outbox = {};
    }
  }

  // Starts the blocks; again after all of them have parked.
  void launch() {
    votes_ = 0;
    ++launches_;
    for (Seat& seat : seats_) {
      if (launches_ > 1 && static_cast<SeatState>(seat.device.state) == SeatState::parked) seat.plan.fresh = 0;
    }
    GridPlan grid = {};
    grid.seats = seats_.data();
    grid.votes = &votes_;
    grid.buffers = buffers_.data();
    grid.seat_count = options_.seats;
    grid.buffer_count = static_cast<std::uint32_t>(buffers_.size());
    grid.spin_polls = 2;
    grid.eager_polls = options_.eager_polls;
    grid.longest_nap_ns = 1000;
    grid.lease_ns = options_.lease_ns;
    grid.time_limit_ns = options_.time_limit_ns;
    grid.park_after_ns = options_.park_after_ns;
    std::vector<std::span<std::byte>> memory;
    for (const auto& block : blocks_) memory.push_back({reinterpret_cast<std::byte*>(block.get()), sizeof *block});
    lanes_ = std::make_unique<LaneScheduler>(
        LaneScheduler::Options{options_.seed * 31 + launches_, options_.seats, options_.lanes},
        [this, grid](std::uint32_t block) { run_lane_seat(grid, block, blocks_[block]->shared); }, std::move(memory));
    lanes_->name_memory(&LaneGrid::name_of);
  }

  // Lets the lanes run until `come` is true. False: it never came, and complaint() says so.
  bool until(const char* what, const std::function<bool()>& come) {
    for (std::uint32_t turn = 0; turn < most_turns; ++turn) {
      if (come()) return true;
      turn_over();
      if (!complaint().empty()) return false;
    }
    complaint_ = fmt::format("never came: {}", what);
    return false;
  }
  void turn_over() {
    if (beats_) {
      for (Seat& seat : seats_) ++seat.host.beat;
    }
    lanes_->run_for_a_while();
  }
  void turns(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) turn_over();
  }
  [[nodiscard]] std::string complaint() const { return lanes_->complaint().empty() ? complaint_ : lanes_->complaint(); }
  [[nodiscard]] LaneScheduler& lanes() { return *lanes_; }
  void fall_silent() { beats_ = false; }
  // Event mode: how many seats have voted to park.
  [[nodiscard]] std::uint64_t votes() const { return votes_; }

  void give_command(std::uint32_t seat, SeatCommand what) {
    seats_[seat].host.command = command_word(++hosts_[seat].commands, what);
  }
  // Gives the command and waits until it is applied and the seat is in one of these states.
  bool command(std::uint32_t seat, SeatCommand what, std::initializer_list<SeatState> states) {
    give_command(seat, what);
    return until("a command obeyed", [&] {
      if (seats_[seat].device.acknowledged != seats_[seat].host.command) return false;
      for (const SeatState state : states) {
        if (this->state(seat) == state) return true;
      }
      return false;
    });
  }
  [[nodiscard]] SeatState state(std::uint32_t seat) const { return static_cast<SeatState>(seats_[seat].device.state); }
  [[nodiscard]] Seat& seat(std::uint32_t index) { return seats_[index]; }
  bool run(std::uint32_t seat) { return command(seat, SeatCommand::run, {SeatState::running}); }

  // Launches the blocks and tells these seats to run, one after the other.
  bool start(std::initializer_list<std::uint32_t> seats) {
    launch();
    for (const std::uint32_t seat : seats) {
      if (!run(seat)) return false;
    }
    return true;
  }

  // At once; false: there is no room.
  bool put(std::uint32_t seat, const Message& message) {
    Host& host = hosts_[seat];
    return (host.in_kind == RingKind::fast ? host.fast_in.try_put(message) : host.bulk_in.try_put(message)) ==
           PutStatus::stored;
  }
  std::optional<Message> get(std::uint32_t seat) {
    Host& host = hosts_[seat];
    Message message;
    const GetStatus status =
        host.out_kind == RingKind::fast ? host.fast_out.try_get(message) : host.bulk_out.try_get(message);
    if (status != GetStatus::taken) return std::nullopt;
    return message;
  }
  // Waits for it.
  std::optional<Message> receive(std::uint32_t seat) {
    std::optional<Message> got;
    until("a message", [&] { return (got = get(seat)).has_value(); });
    return got;
  }
  bool send(std::uint32_t seat, const Message& message) {
    return until("room for a message", [&] { return put(seat, message); });
  }

  // Every seat leaves, and every lane ends.
  bool close() {
    for (std::uint32_t i = 0; i < options_.seats; ++i) give_command(i, SeatCommand::leave);
    return until("the end of all lanes", [&] { return lanes_->has_ended(); });
  }

 private:
  static constexpr std::uint32_t most_turns = 20000;
  struct BlockMemory {
    SeatShared shared;
    alignas(line_bytes) std::byte state[state_capacity];
  };
  struct Host {
    std::uint64_t commands = 0;
    RingKind in_kind = RingKind::fast;
    RingKind out_kind = RingKind::fast;
    void* in_slots = nullptr;
    void* out_slots = nullptr;
    FastWriter<Message> fast_in;
    FastReader<Message> fast_out;
    BulkWriter<Message> bulk_in;
    BulkReader<Message> bulk_out;
    std::vector<ReplySlot> reply_slots;
    std::vector<std::uint64_t> reply_words;
  };

  void* make_slots(std::uint32_t capacity) {
    slots_.emplace_back(capacity);
    return slots_.back().data();
  }
  static std::string name_of(std::size_t offset) {
    struct Part {
      std::size_t end;
      const char* name;
    };
    static constexpr Part parts[] = {
        {offsetof(SeatShared, out), "in"},
        {offsetof(SeatShared, sending), "out"},
        {offsetof(SeatShared, reply), "sending"},
        {offsetof(SeatShared, plan), "reply"},
        {offsetof(SeatShared, batch_position), "plan"},
        {offsetof(SeatShared, credit), "batch_position"},
        {offsetof(SeatShared, outputs), "credit"},
        {offsetof(SeatShared, verdict), "outputs"},
        {offsetof(SeatShared, count), "verdict"},
        {offsetof(SeatShared, eager), "count"},
        {offsetof(SeatShared, left), "eager"},
        {sizeof(SeatShared), "left"},
        {sizeof(BlockMemory), "the actor's state"},
    };
    for (const Part& part : parts) {
      if (offset < part.end) return fmt::format("{} (byte {})", part.name, offset);
    }
    return "?";
  }

  const Options options_;
  std::vector<Seat> seats_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<BlockMemory>> blocks_;
  std::deque<RingLine> lines_;
  std::deque<std::vector<FastSlot<Message>>> slots_;
  std::vector<BufferEntry> buffers_;
  std::uint32_t buffers_used_ = 0;
  std::vector<TeamLine> team_memory_;
  alignas(line_bytes) std::byte team_state_[state_capacity] = {};
  std::uint64_t votes_ = 0;
  std::uint64_t launches_ = 0;
  bool beats_ = true;
  std::string complaint_;
  std::unique_ptr<LaneScheduler> lanes_;
};

}  // namespace cingulum::ring::testing
