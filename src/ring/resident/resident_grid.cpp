#include "ring/resident/resident_grid.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/quantity.hpp"
#include "ring/resident/resident_actor.hpp"

namespace cingulum::ring {
namespace {

constexpr std::uint64_t slot_bytes = sizeof(FastSlot<Message>);  // the larger of both kinds
constexpr Nanoseconds query_interval = std::chrono::milliseconds(10);
// The service thread sleeps for this long between two looks at bodies that may have ended. Not shorter: it would keep
// those who talk to actors waiting for the memory that it looks at.
constexpr Nanoseconds service_sleep = std::chrono::milliseconds(1);
// After a call the service looks without sleeping for this long.
constexpr Nanoseconds attention = std::chrono::milliseconds(2);

// Enough for any mix of actors with several seats, however they come and go: twice what two seats a piece would take.
std::uint64_t teams_bytes(std::uint32_t seats) {
  return 2 * ((std::uint64_t{seats} + 1) / 2) * team_bytes(2);
}

std::uint64_t in_ns(Nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

std::string_view reason_text(LeaveReason reason) {
  switch (reason) {
    case LeaveReason::commanded: return "it was told to";
    case LeaveReason::host_silent: return "the host was silent for longer than the lease";
    case LeaveReason::time_limit: return "its time limit is over";
    default: return "of an unknown reason";
  }
}

// Grids of this process that run. A program that calls exit() with actors at work takes them along: whatever frees the
// device's memory on the way out would wait for the kernel, which lives as long as the host beats.
class RunningGrids {
 public:
  static void add(const std::shared_ptr<ResidentGrid>& grid) {
    RunningGrids& all = instance();
    const std::lock_guard lock(all.mutex_);
    std::erase_if(all.grids_, [](const auto& each) { return each.expired(); });
    all.grids_.push_back(grid);
  }

 private:
  // Never destroyed: it is asked for while everything else is.
  static RunningGrids& instance() {
    static RunningGrids* const all = [] {
      std::atexit([] { instance().close(); });
      return new RunningGrids();
    }();
    return *all;
  }
  void close() {
    std::vector<std::weak_ptr<ResidentGrid>> grids;
    {
      const std::lock_guard lock(mutex_);
      grids.swap(grids_);
    }
    for (const auto& each : grids) {
      if (const auto grid = each.lock()) static_cast<void>(grid->close(std::chrono::seconds(1)));
    }
  }
  std::mutex mutex_;
  std::vector<std::weak_ptr<ResidentGrid>> grids_;
};

}  // namespace

Status check_options(const GridOptions& options) {
  const auto wrong = [](std::string_view what, std::uint64_t value, std::string_view accepted) {
    return fail(ErrorKind::invalid_argument, "grid: {} is {}, must be {}", what, value, accepted);
  };
  if (options.seats == 0 || options.seats > 1024) return wrong("seats", options.seats, "1 to 1024");
  if (options.lanes == 0 || options.lanes % 32 != 0 || options.lanes > 256) {
    return wrong("lanes", options.lanes, "32, 64, ... 256");
  }
  for (const std::uint32_t capacity : {options.ring_capacity, options.edge_capacity}) {
    if (!is_power_of_two(capacity) || capacity > (1u << 20)) return wrong("a capacity", capacity, "a power of two");
  }
  if (options.buffers == 0) return wrong("buffers", 0, "at least 1");
  if (options.reply_buffers != 0) {
    if (!is_power_of_two(options.reply_buffers)) return wrong("reply_buffers", options.reply_buffers, "a power of two");
    if (options.reply_buffer_bytes == 0) return wrong("reply_buffer_bytes", 0, "at least 1");
    if (std::uint64_t{options.reply_buffers} * options.seats > options.buffers) {
      return wrong("buffers", options.buffers, "at least the reply buffers of all seats");
    }
  }
  if (options.lease < std::chrono::milliseconds(100)) {
    return wrong("lease", in_ns(options.lease), "at least 100 ms (in nanoseconds)");
  }
  return {};
}

ResidentGrid::ResidentGrid(std::unique_ptr<ResidentBackend> backend, const GridOptions& options)
    : backend_(std::move(backend)),
      options_(options),
      sitting_(options.seats),
      taken_(options.seats, false),
      command_numbers_(options.seats, 0) {
  event_mode_ = options.mode == GridOptions::Mode::event ||
                (options.mode == GridOptions::Mode::automatic && backend_->ends_long_kernels());
}

Result<std::shared_ptr<ResidentGrid>> ResidentGrid::open(std::unique_ptr<ResidentBackend> backend,
                                                         const GridOptions& options) {
  CGL_TRY(check_options(options));
  const std::string id = backend->id();
  CGL_TRY_ASSIGN(const std::uint32_t most, backend->most_seats(options.lanes, options.most_processors));
  if (options.seats > most) {
    return fail(
        ErrorKind::invalid_argument,
        "grid on {}: {} seats of {} lanes, of which only {} run at the same time; ask for fewer seats or lanes{}", id,
        options.seats, options.lanes, most, options.most_processors == 0 ? "" : " or more processors");
  }
  if (options.mode == GridOptions::Mode::resident && backend->ends_long_kernels()) {
    return fail(ErrorKind::unavailable,
                "grid on {}: the driver ends kernels that run long, because a display is attached; use event mode", id);
  }
  std::shared_ptr<ResidentGrid> grid(new ResidentGrid(std::move(backend), options));
  CGL_TRY(add_context(grid->allocate(), "grid on {}", id));
  CGL_TRY(add_context(grid->start_kernel(), "grid on {}", id));
  // The thread may be the last to let go of an actor, and with it of the grid: it holds none between two rounds.
  grid->service_ = std::thread([weak = std::weak_ptr(grid), call = grid->service_call_] {
    for (;;) {
      auto self = weak.lock();
      if (self == nullptr || self->service_stop_) return;
      const Nanoseconds sleep_time = self->serve();
      self.reset();
      if (sleep_time.count() != 0) {
        static_cast<void>(call->bell.wait([&] { return call->was_made.load(std::memory_order_acquire); },
                                          deadline_from_now(sleep_time)));
      } else {
        HostAtomics::pause();
      }
    }
  });
  RunningGrids::add(grid);
  return grid;
}

ResidentGrid::~ResidentGrid() {
  static_cast<void>(close());
}

Status ResidentGrid::allocate() {
  const std::uint64_t ring_bytes = std::uint64_t{options_.ring_capacity} * slot_bytes;
  CGL_TRY_ASSIGN(seat_memory_, backend_->allocate_mapped(options_.seats * sizeof(Seat)));
  CGL_TRY_ASSIGN(ring_memory_, backend_->allocate_mapped(options_.seats * 2 * ring_bytes));
  CGL_TRY_ASSIGN(buffer_memory_, backend_->allocate_mapped(options_.buffers * sizeof(BufferEntry)));
  CGL_TRY_ASSIGN(scratch_memory_, backend_->allocate_mapped(options_.scratch_bytes));
  CGL_TRY_ASSIGN(abandoned_memory_, backend_->allocate_mapped(abandoned_request_count * sizeof(std::uint64_t)));
  seats_ = reinterpret_cast<Seat*>(seat_memory_.host);
  buffers_ =
      std::make_unique<BufferTable>(std::span(reinterpret_cast<BufferEntry*>(buffer_memory_.host), options_.buffers));
  CGL_TRY(allocate_replies());
  const std::uint64_t edge_bytes = 2 * sizeof(RingLine) + std::uint64_t{options_.edge_capacity} * slot_bytes;
  CGL_TRY_ASSIGN(std::byte* const device,
                 backend_->allocate_device(line_bytes + std::uint64_t{options_.seats} * state_capacity +
                                           options_.edges * edge_bytes));
  CGL_TRY_ASSIGN(teams_, backend_->allocate_device(teams_bytes(options_.seats)));
  votes_ = reinterpret_cast<std::uint64_t*>(device);
  states_ = device + line_bytes;
  std::byte* const first_edge = states_ + std::uint64_t{options_.seats} * state_capacity;
  for (std::uint32_t i = 0; i < options_.edges; ++i) {
    std::byte* const memory = first_edge + i * edge_bytes;
    auto* const lines = reinterpret_cast<RingLine*>(memory);
    edges_.push_back({{memory + 2 * sizeof(RingLine), lines, lines + 1, options_.edge_capacity, RingKind::fast}, 0});
  }
  return {};
}

Status ResidentGrid::allocate_replies() {
  const std::uint64_t count = options_.reply_buffers;
  if (count == 0) return {};
  const std::uint64_t bytes = (options_.reply_buffer_bytes + line_bytes - 1) / line_bytes * line_bytes;
  CGL_TRY_ASSIGN(reply_slot_memory_, backend_->allocate_mapped(options_.seats * count * sizeof(ReplySlot)));
  CGL_TRY_ASSIGN(reply_memory_, backend_->allocate_mapped(options_.seats * count * bytes));
  for (std::uint32_t i = 0; i < options_.seats; ++i) {
    ReplyRing::Memory memory;
    memory.slots = reinterpret_cast<ReplySlot*>(reply_slot_memory_.host) + i * count;
    memory.writer = &seats_[i].replies_writer;
    memory.host = reply_memory_.host + i * count * bytes;
    memory.actor_side = reply_memory_.device + i * count * bytes;
    CGL_TRY_ASSIGN(auto ring, ReplyRing::make(*buffers_, memory, options_.reply_buffers, bytes));
    reply_rings_.push_back(std::move(ring));
  }
  return {};
}

SeatReplies ResidentGrid::replies_of(std::uint32_t seat) const {
  if (options_.reply_buffers == 0) return {};
  auto* const seen = reinterpret_cast<Seat*>(seat_memory_.device) + seat;
  const auto* const slots = reinterpret_cast<const ReplySlot*>(reply_slot_memory_.device);
  return {slots + std::uint64_t{seat} * options_.reply_buffers, &seen->replies_writer, &seen->replies_reader,
          options_.reply_buffers, 0};
}

Result<Team*> ResidentGrid::take_team(std::uint32_t seats) {
  const std::uint64_t bytes = team_bytes(seats);
  TeamMemory place{0, bytes};
  {
    const std::lock_guard lock(mutex_);
    auto next = taken_teams_.begin();
    for (; next != taken_teams_.end() && next->begin < place.end; ++next) place = {next->end, next->end + bytes};
    if (place.end > teams_bytes(options_.seats)) {
      return fail(ErrorKind::full, "grid on {}: no memory for {} seats to speak to each other", backend_->id(), seats);
    }
    taken_teams_.insert(next, place);
  }
  auto* const team = reinterpret_cast<Team*>(teams_ + place.begin);
  const Status cleared = backend_->clear_device(teams_ + place.begin, bytes);
  if (!cleared) {
    give_team(team);
    return tl::make_unexpected(cleared.error());
  }
  return team;
}

void ResidentGrid::give_team(Team* team) {
  const auto begin = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(team) - teams_);
  const std::lock_guard lock(mutex_);
  std::erase_if(taken_teams_, [&](const TeamMemory& place) { return place.begin == begin; });
}

Status ResidentGrid::start_kernel() {
  if (event_mode_) {
    CGL_TRY(backend_->clear_device(reinterpret_cast<std::byte*>(votes_), sizeof *votes_));
    for (std::uint32_t i = 0; i < options_.seats; ++i) {
      // Actors that were parked go on where they were.
      const auto state = static_cast<SeatState>(HostAtomics::load_acquire(seats_[i].device.state));
      if (state == SeatState::parked) seats_[i].plan.fresh = 0;
    }
  }
  GridPlan plan = {};
  plan.seats = reinterpret_cast<Seat*>(seat_memory_.device);
  plan.votes = votes_;
  plan.buffers = reinterpret_cast<const BufferEntry*>(buffer_memory_.device);
  plan.abandoned = reinterpret_cast<const std::uint64_t*>(abandoned_memory_.device);
  plan.seat_count = options_.seats;
  plan.buffer_count = options_.buffers;
  plan.buffer_table = buffers_->number();
  plan.spin_polls = options_.spin_polls;
  plan.eager_polls = options_.eager_polls;
  plan.longest_nap_ns = options_.longest_nap_ns;
  plan.lease_ns = in_ns(options_.lease);
  plan.time_limit_ns = in_ns(options_.time_limit);
  plan.park_after_ns = event_mode_ ? in_ns(options_.park_after) : 0;
  CGL_TRY(backend_->launch(plan, options_.lanes));
  ++launches_;
  return {};
}

Status ResidentGrid::close(Nanoseconds timeout) {
  if (closed_.exchange(true)) return {};
  Status result;
  {
    const std::lock_guard launching(launch_mutex_);  // no launch from here on
    if (seats_ != nullptr && launches_ != 0 && !is_lost_) {
      for (std::uint32_t i = 0; i < options_.seats; ++i) {
        const std::lock_guard lock(mutex_);
        HostAtomics::store_release(seats_[i].host.command, command_word(++command_numbers_[i], SeatCommand::leave));
      }
    }
  }
  if (launches_ != 0) {
    const std::uint64_t deadline = deadline_from_now(timeout);
    LookAgain again(WaitStrategy{});
    for (;;) {
      const auto ended = backend_->has_ended();
      if (!ended) {
        lose(ended.error());
        break;
      }
      if (*ended) break;
      if (steady_now_ns() >= deadline) {
        result = fail(ErrorKind::timed_out, "grid on {}: it does not end; a body does not return", backend_->id());
        break;
      }
      again.pause();
    }
  }
  ended_ = true;
  service_stop_ = true;
  call_service();
  join_or_let_go(service_);
  const Error closed(ErrorKind::closed, fmt::format("the grid on {} was closed", backend_->id()));
  tell_actors(closed);
  return result;
}

std::optional<Error> ResidentGrid::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void ResidentGrid::lose(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = error;
  }
  is_lost_ = true;
}

void ResidentGrid::tell_actors(const Error& why) {
  std::vector<std::shared_ptr<ResidentActor>> actors;
  {
    const std::lock_guard lock(mutex_);
    actors = living(sitting_);
  }
  for (const auto& actor : actors) actor->grid_is_gone(why);
}

bool ResidentGrid::has_ended() {
  if (ended_) return true;
  const auto ended = backend_->has_ended();
  return !ended || *ended;
}

LeaveReason ResidentGrid::leave_reason() const {
  for (std::uint32_t i = 0; i < options_.seats; ++i) {
    const auto reason = static_cast<LeaveReason>(HostAtomics::load_acquire(seats_[i].device.leave_reason));
    if (reason != LeaveReason::none) return reason;
  }
  return LeaveReason::none;
}

Result<MappedMemory> ResidentGrid::scratch(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t whole = (bytes + line_bytes - 1) / line_bytes * line_bytes;
  if (whole < bytes || whole > options_.scratch_bytes - scratch_used_) {
    return fail(ErrorKind::full, "grid on {}: {} of mapped memory, {} are left of scratch_bytes", backend_->id(),
                format_bytes(bytes), format_bytes(options_.scratch_bytes - scratch_used_));
  }
  const MappedMemory piece{scratch_memory_.host + scratch_used_, scratch_memory_.device + scratch_used_};
  scratch_used_ += whole;
  return piece;
}

Status ResidentGrid::check_body(std::string_view name, std::string_view body, const BodyType& given) const {
  const std::vector<std::string>& known = backend_->actors();
  const std::vector<BodyType>& types = backend_->body_types();
  const auto index = static_cast<std::size_t>(std::find(known.begin(), known.end(), body) - known.begin());
  if (index >= types.size() || types[index].type.empty()) return {};
  if (types[index].type == given.type && types[index].bytes == given.bytes) return {};
  return fail(ErrorKind::invalid_argument,
              "launching '{}' on {}: body '{}' of its program is of type {} with {} bytes, not {} with {}", name,
              backend_->id(), body, types[index].type, types[index].bytes, given.type, given.bytes);
}

Result<ActorHandle> ResidentGrid::launch(Runtime& runtime, std::string name, std::string_view body,
                                         std::span<const std::byte> arguments, RingKind kind,
                                         const ActorOptions& options) {
  const std::vector<std::string>& known = backend_->actors();
  const auto found = std::find(known.begin(), known.end(), body);
  if (found == known.end()) {
    return fail(ErrorKind::not_found, "launching '{}' on {}: no body '{}' in its program (it has: {})", name,
                backend_->id(), body, fmt::join(known, ", "));
  }
  if (arguments.size() > body_capacity || kind == RingKind::none) {
    return fail(ErrorKind::invalid_argument, "launching '{}': a body has at most {} bytes of members and a ring kind",
                name, body_capacity);
  }
  CGL_TRY(check_options(name, options));
  auto actor = std::make_shared<ResidentActor>(std::move(name), runtime.next_number(), shared_from_this(),
                                               static_cast<std::uint32_t>(found - known.begin()), arguments, kind,
                                               options, runtime.services());
  return launch_and_adopt(runtime, actor);
}

Result<std::vector<std::uint32_t>> ResidentGrid::take_seats(ResidentActor& actor, std::uint32_t count) {
  // An actor that has just ended is about to leave its seat: it is waited for.
  const std::uint64_t deadline = deadline_from_now(std::chrono::milliseconds(500));
  for (;;) {
    bool one_is_leaving = false;
    std::vector<std::shared_ptr<ResidentActor>> others;  // let go without the lock: an actor that goes asks for it
    {
      const std::lock_guard lock(mutex_);
      if (lost_) return tl::make_unexpected(*lost_);
      if (closed_) return fail(ErrorKind::closed, "the grid on {} was closed", backend_->id());
      std::vector<std::uint32_t> seats;
      for (std::uint32_t i = 0; i < options_.seats && seats.size() < count; ++i) {
        if (!taken_[i]) seats.push_back(i);
      }
      if (seats.size() == count) {
        for (const std::uint32_t seat : seats) {
          taken_[seat] = true;
          sitting_[seat] = std::static_pointer_cast<ResidentActor>(actor.shared_from_this());
        }
        return seats;
      }
      for (std::uint32_t i = 0; i < options_.seats; ++i) {
        if (!taken_[i]) continue;
        others.push_back(sitting_[i].lock());
        const ActorState state = others.back() == nullptr ? ActorState::terminated : others.back()->state();
        one_is_leaving = one_is_leaving || state == ActorState::terminated || state == ActorState::failed;
      }
    }
    if (!one_is_leaving || steady_now_ns() > deadline) {
      if (count == 1) {
        return fail(ErrorKind::full, "launching '{}' on {}: all {} seats are taken; open the grid with more",
                    actor.name(), backend_->id(), options_.seats);
      }
      return fail(ErrorKind::full, "launching '{}' on {}: {} seats are not free of {}; open the grid with more",
                  actor.name(), backend_->id(), count, options_.seats);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void ResidentGrid::give_seat(std::uint32_t seat) {
  const std::lock_guard lock(mutex_);
  taken_[seat] = false;
  sitting_[seat].reset();
  // Requests that went down with their actors are not answered any more.
  if (std::find(taken_.begin(), taken_.end(), true) != taken_.end()) return;
  open_requests_ = 0;
  abandoned_.clear();
}

void ResidentGrid::abandon_request(std::uint64_t correlation) {
  auto* const words = reinterpret_cast<std::uint64_t*>(abandoned_memory_.host);
  HostAtomics::store_release(words[correlation % abandoned_request_count], correlation);
  const std::lock_guard lock(mutex_);
  // A body may never answer: what is forgotten here is one request more that the service thread looks for.
  constexpr std::size_t most_remembered = 4096;
  if (abandoned_.size() == most_remembered) abandoned_.pop_front();
  abandoned_.push_back(correlation);
}

void ResidentGrid::late_reply_came(std::uint64_t correlation) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(abandoned_.begin(), abandoned_.end(), correlation);
  if (found == abandoned_.end()) return;  // a second answer, or one to a request that has failed
  abandoned_.erase(found);
  reply_came();
}

ResidentGrid::SeatRings ResidentGrid::make_rings(std::uint32_t seat, RingKind kind, std::uint32_t inbox_capacity,
                                                 std::uint32_t outbox_capacity) {
  const std::uint64_t ring_bytes = std::uint64_t{options_.ring_capacity} * slot_bytes;
  const std::uint64_t offset = seat * 2 * ring_bytes;
  SeatRings rings;
  rings.inbox_slots = ring_memory_.host + offset;
  rings.outbox_slots = rings.inbox_slots + ring_bytes;
  const std::uint64_t bytes = kind == RingKind::fast ? slot_bytes : sizeof(Message);
  std::memset(rings.inbox_slots, 0, inbox_capacity * bytes);
  std::memset(rings.outbox_slots, 0, outbox_capacity * bytes);
  Seat& memory = seats_[seat];
  memory.inbox_writer = memory.inbox_reader = memory.outbox_writer = memory.outbox_reader = RingLine{};
  auto* const seen = reinterpret_cast<Seat*>(seat_memory_.device) + seat;
  rings.inbox = {ring_memory_.device + offset, &seen->inbox_writer, &seen->inbox_reader, inbox_capacity, kind};
  rings.outbox = {ring_memory_.device + offset + ring_bytes, &seen->outbox_writer, &seen->outbox_reader,
                  outbox_capacity, kind};
  return rings;
}

Result<std::uint32_t> ResidentGrid::take_edge() {
  std::uint32_t index = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto free = std::find_if(edges_.begin(), edges_.end(), [](const EdgeMemory& edge) { return edge.ends == 0; });
    if (free == edges_.end()) {
      return fail(ErrorKind::full, "wiring on {}: all {} edges are taken; open the grid with more", backend_->id(),
                  options_.edges);
    }
    free->ends = 2;
    free->woken_written = free->woken_read = 0;
    index = static_cast<std::uint32_t>(free - edges_.begin());
  }
  const std::uint64_t bytes = 2 * sizeof(RingLine) + std::uint64_t{options_.edge_capacity} * slot_bytes;
  CGL_TRY(backend_->clear_device(reinterpret_cast<std::byte*>(edges_[index].ring.writer), bytes));
  return index;
}

std::uint64_t ResidentGrid::release_edge_end(std::uint32_t edge) {
  std::uint64_t left = 0;
  {
    const std::lock_guard lock(mutex_);
    if (edges_[edge].ends == 2) {
      edges_[edge].ends = 1;
      return 0;
    }
  }
  // Both seats have left and said how far they were. Nobody else takes the edge until it is given back below.
  const SeatRing& ring = edges_[edge].ring;
  if (!is_lost_ && !closed_) {
    const auto written = backend_->load_device_word(&ring.writer->position);
    const auto read = backend_->load_device_word(&ring.reader->position);
    if (written && read && *written > *read) left = *written - *read;
  }
  const std::lock_guard lock(mutex_);
  edges_[edge].ends = 0;
  return left;
}

Status ResidentGrid::close_edge_reader(std::uint32_t edge) {
  if (is_lost_) return {};
  return backend_->store_device_word(&edges_[edge].ring.reader->closed, 1);
}

Result<std::uint64_t> ResidentGrid::give_command(std::uint32_t index, SeatCommand what) {
  const std::lock_guard lock(mutex_);
  if (closed_) return fail(ErrorKind::closed, "the grid on {} was closed", backend_->id());
  const std::uint64_t word = command_word(++command_numbers_[index], what);
  HostAtomics::store_release(seats_[index].host.command, word);
  return word;
}

Result<std::optional<SeatState>> ResidentGrid::answer_to(std::uint32_t index, std::uint64_t word) {
  wake();
  const SeatDeviceLine& line = seats_[index].device;
  const bool is_acknowledged = HostAtomics::load_acquire(line.acknowledged) == word;
  const auto state = static_cast<SeatState>(HostAtomics::load_acquire(line.state));
  if (is_lost_) return tl::make_unexpected(*lost());
  if (ended_ || (is_acknowledged && state == SeatState::left)) {
    return fail(ErrorKind::closed, "the grid on {} has ended: {}", backend_->id(), reason_text(leave_reason()));
  }
  return is_acknowledged ? std::optional(state) : std::nullopt;
}

void ResidentGrid::wake() {
  if (!event_mode_ || is_lost_) return;
  const std::lock_guard lock(launch_mutex_);
  if (closed_) return;
  const auto ended = backend_->has_ended();
  if (!ended) {
    lose(ended.error());
  } else if (*ended && leave_reason() == LeaveReason::none) {
    if (const Status started = start_kernel(); !started) lose(started.error());
  }
}

Nanoseconds ResidentGrid::serve() {
  const std::uint64_t beat_interval = std::min(in_ns(options_.lease) / 10, std::uint64_t{20'000'000});
  const std::uint64_t now = steady_now_ns();
  if (beating_ && now - last_beat_ns_ >= beat_interval) {
    ++beats_;
    for (std::uint32_t i = 0; i < options_.seats; ++i) HostAtomics::store_relaxed(seats_[i].host.beat, beats_);
    last_beat_ns_ = now;
  }
  serve_actors();
  if (now - last_query_ns_ >= in_ns(query_interval) && !closed_ && !ended_) {
    last_query_ns_ = now;
    std::optional<Error> gone;
    const auto ended = backend_->has_ended();
    if (!ended) {
      lose(ended.error());
      gone = ended.error();
    } else if (*ended && (!event_mode_ || leave_reason() != LeaveReason::none)) {
      gone = Error(ErrorKind::closed,
                   fmt::format("the grid on {} has ended: {}", backend_->id(), reason_text(leave_reason())));
    } else if (*ended && wires_hold_work()) {
      wake();
    }
    if (gone) {
      ended_ = true;
      tell_actors(*gone);
    }
  }
  if (service_call_->was_made.exchange(false, std::memory_order_acquire)) last_work_ns_ = now;
  // Work may have come after `now` was read: compared without a difference, which would wrap round.
  return now > last_work_ns_ + in_ns(attention) ? service_sleep : Nanoseconds::zero();
}

bool ResidentGrid::wires_hold_work() {
  // An actor votes to park without seeing what another sends it in the same moment: the grid closes with the message in
  // the wire. Positions are published when seats are left, so one look after each launch is enough.
  const std::uint64_t launch = launches_;
  if (wires_seen_of_launch_ == launch) return false;
  wires_seen_of_launch_ = launch;
  bool found = false;
  for (EdgeMemory& edge : edges_) {
    {
      const std::lock_guard lock(mutex_);
      if (edge.ends != 2) continue;
    }
    const auto written = backend_->load_device_word(&edge.ring.writer->position);
    const auto read = backend_->load_device_word(&edge.ring.reader->position);
    if (!written || !read || *written == *read) continue;
    const std::lock_guard lock(mutex_);
    if (*written == edge.woken_written && *read == edge.woken_read) continue;
    edge.woken_written = *written;
    edge.woken_read = *read;
    found = true;
  }
  return found;
}

void ResidentGrid::serve_actors() {
  for (std::uint32_t i = 0; i < options_.seats; ++i) {
    std::shared_ptr<ResidentActor> actor;
    {
      const std::lock_guard lock(mutex_);
      actor = sitting_[i].lock();
    }
    if (actor == nullptr) continue;
    if (actor->serve()) last_work_ns_ = steady_now_ns();
    // Work that came in the moment when the grid was closing for want of it.
    if (event_mode_ && actor->has_work_waiting()) wake();
  }
}

}  // namespace cingulum::ring
