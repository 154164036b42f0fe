// Tracking actors as blocks of a kernel that stays: the host's side. A request lies in memory that both sides see; its
// seeds are cut into chunks, each of which is one message to one actor and names the buffer for its streamlines. So the
// requester decides how many are under way, and an actor never waits for a reader.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device/working_memory.hpp"
#include "examples/tracking_actors/resident_tracking_body.hpp"
#include "examples/tracking_actors/tracked_parts.hpp"
#include "examples/tracking_actors/tracking_actors.hpp"
#include "ring/resident/resident_grid.hpp"
#include "tract/cpu/tables.hpp"
#include "tract/paged/paged_field.hpp"

namespace cingulum {
namespace {

using ring::BufferHandle;

constexpr std::uint32_t parts_per_actor = 2;  // one is written while the other is read
// A chunk shall not be reported as a stall: streamlines of ptt may take seconds.
constexpr ring::Nanoseconds longest_chunk = std::chrono::seconds(60);

// Memory that both sides see, by its handle.
struct MappedPiece {
  BufferHandle handle;
  std::span<std::byte> bytes;
};

// What is lent to requests, and nobody waits for.
template <class T>
class Lent {
 public:
  void add(const T& one) { free_.push_back(one); }
  // None where all are lent.
  [[nodiscard]] std::optional<T> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::nullopt;
    const T one = free_.back();
    free_.pop_back();
    return one;
  }
  void give_back(const T& one) {
    const std::lock_guard lock(mutex_);
    free_.push_back(one);
  }

 private:
  std::mutex mutex_;
  std::vector<T> free_;
};

// A request's own: its plan and seeds, and a buffer for streamlines, so that it goes on whatever others have.
struct RequestPlace {
  MappedPiece request;
  MappedPiece part;
};

// What actors and streams share. Streams keep it, so that the grid outlives what they wait for.
struct ResidentTracking {
  ResidentTrackingOptions options;
  std::shared_ptr<const Field> source;
  std::shared_ptr<WorkingMemory> memory;  // what trackers give back beside the grid is taken again by the next ones
  std::unique_ptr<PagedField> field;
  std::vector<std::shared_ptr<const TablesOnDevice>> tables;
  std::unique_ptr<Buffer> inputs, layout, actor_memory;
  std::shared_ptr<ring::ResidentGrid> grid;
  std::unique_ptr<ring::Runtime> runtime;
  std::vector<ring::ActorHandle> actors;
  std::atomic<std::uint32_t> next_actor{0};
  Lent<RequestPlace> places;
  Lent<MappedPiece> parts;  // besides those of the places
  std::mutex channel_mutex;
  std::map<std::uint32_t, std::uint64_t> newest_of_channel;  // guarded by channel_mutex
  std::uint64_t last_request = 0;                            // likewise

  // Actors first, then the grid, then memory: nothing may be freed while the kernel runs.
  ~ResidentTracking() {
    actors.clear();
    if (runtime) runtime->shutdown(ring::Termination::discard());
    if (grid) static_cast<void>(grid->close());
    runtime.reset();
    grid.reset();
  }
};

class ResidentStream final : public StreamlineStream {
 public:
  ResidentStream(std::shared_ptr<ResidentTracking> shared, const RequestPlace& place, const TrackingQuestion& question,
                 std::uint64_t number)
      : shared_(std::move(shared)),
        place_(place),
        seeds_(static_cast<std::uint32_t>(question.seeds.size())),
        channel_(question.channel),
        number_(number) {
    // Enough chunks that all actors work and end together, few enough that messages do not count.
    const auto actors = static_cast<std::uint32_t>(shared_->actors.size());
    chunk_ = std::clamp((seeds_ + 2 * actors - 1) / (2 * actors), 1u, shared_->options.most_chunk_seeds);
  }
  // The request's memory may be lent again when no actor reads or writes it any more.
  ~ResidentStream() override {
    for (Chunk& chunk : under_way_) {
      if (chunk.answer) static_cast<void>(chunk.answer->wait(longest_chunk));
      give_back(chunk.part);
    }
    shared_->places.give_back(place_);
  }

  [[nodiscard]] Result<std::optional<StreamlineBatch>> next(ring::Nanoseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      CGL_TRY(check_wanted());
      CGL_TRY(send_chunks());
      if (under_way_.empty()) return std::optional<StreamlineBatch>();
      Chunk& first = under_way_.front();
      // A wait that ends by its time gives up on the answer, and nobody would know when the buffer is free again.
      while (!first.answer->is_done()) {
        CGL_TRY(check_wanted());
        if (timeout != ring::no_time_limit && std::chrono::steady_clock::now() >= deadline) {
          return fail(ErrorKind::timed_out, "streamlines of seeds {} to {}: none in time", first.message.first_seed,
                      first.message.first_seed + first.message.seeds);
        }
        std::this_thread::yield();
      }
      CGL_TRY_ASSIGN(const bool is_whole, take_answer(first));
      if (!is_whole) continue;
      StreamlineBatch batch = std::move(first.batch);
      give_back(first.part);
      under_way_.pop_front();
      return std::optional<StreamlineBatch>(std::move(batch));
    }
  }
  void cancel() override { cancelled_ = true; }

 private:
  struct Chunk {
    MappedPiece part;
    TrackChunk message;
    ring::ActorHandle actor;
    std::optional<ring::PendingReply> answer;
    StreamlineBatch batch;
  };

  [[nodiscard]] Status check_wanted() {
    if (failure_) return tl::make_unexpected(*failure_);
    std::string_view why;
    if (cancelled_) why = "cancelled";
    if (channel_ != 0) {
      const std::lock_guard lock(shared_->channel_mutex);
      if (shared_->newest_of_channel[channel_] != number_) why = "a newer request took its place";
    }
    if (why.empty()) return {};
    failure_ = Error(ErrorKind::interrupted, fmt::format("tracking from {} seeds: {}", seeds_, why));
    return tl::make_unexpected(*failure_);
  }

  [[nodiscard]] std::optional<MappedPiece> take_part() {
    if (std::exchange(own_part_is_free_, false)) return place_.part;
    return shared_->parts.take();
  }
  void give_back(const MappedPiece& part) {
    if (part.bytes.data() == place_.part.bytes.data()) {
      own_part_is_free_ = true;
    } else {
      shared_->parts.give_back(part);
    }
  }

  // Sends as many chunks as there are buffers for; one at least is under way afterwards unless all are done.
  [[nodiscard]] Status send_chunks() {
    const std::size_t most = parts_per_actor * shared_->actors.size();
    while (sent_ < seeds_ && under_way_.size() < most) {
      const std::optional<MappedPiece> part = take_part();
      if (!part) return {};
      const std::uint32_t count = std::min(chunk_, seeds_ - sent_);
      Chunk& chunk = under_way_.emplace_back();
      chunk.part = *part;
      chunk.message = {place_.request.handle, part->handle, sent_, count, 0, count * most_initial_directions};
      const std::uint32_t number = shared_->next_actor++;
      chunk.actor = shared_->actors[number % shared_->actors.size()];
      sent_ += count;
      CGL_TRY(send(chunk));
    }
    return {};
  }

  [[nodiscard]] Status send(Chunk& chunk) {
    ring::Message message = ring::make_message(chunk.message);
    message.header.flags |= ring::mark_handle;
    auto asked = shared_->runtime->request_later(*chunk.actor, message);
    if (!asked) {
      failure_ = asked.error();
      return tl::make_unexpected(std::move(asked.error()));
    }
    chunk.answer.emplace(std::move(*asked));
    return {};
  }

  // Whether all lines of the chunk are there; asks for the others where they are not.
  [[nodiscard]] Result<bool> take_answer(Chunk& chunk) {
    auto answer = chunk.answer->wait();
    chunk.answer.reset();
    auto head = answer ? read_part(chunk.part.bytes, chunk.batch) : tl::make_unexpected(std::move(answer.error()));
    if (!head) {
      failure_ = head.error();
      return tl::make_unexpected(std::move(head.error()));
    }
    const std::uint32_t there = chunk.message.first_line + head->lines;
    if (there >= head->lines_in_all) return true;
    if (head->lines == 0 && chunk.message.most_lines <= 1) {
      failure_ = Error(ErrorKind::out_of_memory,
                       fmt::format("a streamline of seed {} needs more than the {} pages of an actor",
                                   chunk.message.first_seed, shared_->options.most_pages));
      return tl::make_unexpected(*failure_);
    }
    chunk.message.first_line = there;
    // Where pages ran out before the first line had ended: fewer at a time.
    if (head->lines == 0) chunk.message.most_lines = std::max(1u, chunk.message.most_lines / 8);
    CGL_TRY(send(chunk));
    return false;
  }

  const std::shared_ptr<ResidentTracking> shared_;
  const RequestPlace place_;
  bool own_part_is_free_ = true;
  const std::uint32_t seeds_;
  const std::uint32_t channel_;
  const std::uint64_t number_;
  std::uint32_t chunk_ = 1;
  std::uint32_t sent_ = 0;
  std::deque<Chunk> under_way_;
  std::atomic<bool> cancelled_{false};
  std::optional<Error> failure_;
};

class ResidentTrackingActors final : public TrackingActors {
 public:
  explicit ResidentTrackingActors(std::shared_ptr<ResidentTracking> shared) : shared_(std::move(shared)) {}

  [[nodiscard]] Result<std::unique_ptr<StreamlineStream>> ask(const TrackingQuestion& question) override {
    return catch_out_of_memory([&]() -> Result<std::unique_ptr<StreamlineStream>> {
      CGL_TRY(check(question));
      const std::optional<RequestPlace> place = shared_->places.take();
      if (!place) {
        return fail(ErrorKind::full, "{} requests to these tracking actors are open, which is all that they take",
                    shared_->options.requests);
      }
      std::uint64_t number = 0;
      {
        const std::lock_guard lock(shared_->channel_mutex);
        number = ++shared_->last_request;
        if (question.channel != 0) shared_->newest_of_channel[question.channel] = number;
      }
      write_request(question, place->request.bytes);
      return std::make_unique<ResidentStream>(shared_, *place, question, number);
    });
  }

 private:
  [[nodiscard]] Status check(const TrackingQuestion& question) const {
    CGL_TRY(check_question(question));
    CGL_TRY(check_plan_and_field(question.plan, *shared_->source));
    const ResidentTrackingOptions& options = shared_->options;
    if (question.seeds.size() > options.most_request_seeds) {
      return fail(ErrorKind::invalid_argument, "{} seeds in one request to actors that take {} at most",
                  question.seeds.size(), options.most_request_seeds);
    }
    if (!(question.plan.stop_threshold >= options.lowest_stop_threshold)) {
      return fail_argument("stop_threshold", "the field was prepared for {} {} and higher; {} is lower",
                           argument_name("stop_threshold"), options.lowest_stop_threshold,
                           question.plan.stop_threshold);
    }
    const std::uint64_t points = 2 * std::uint64_t{question.plan.max_steps} + 1;
    const std::uint64_t pages = 2 * (std::uint64_t{question.plan.max_steps} / kernel::page_points + 1);
    if (tracked_part_bytes(1, points) <= options.part_bytes && pages <= options.most_pages) return {};
    return fail(ErrorKind::invalid_argument,
                "a streamline of this plan may have {} points, more than the buffers of these actors hold; ask for a "
                "smaller {} or a larger {}",
                points, argument_name("max_length"), argument_name("step_size"));
  }

  std::shared_ptr<ResidentTracking> shared_;
};

// The tables of every getter that fits the field, and the memory of a slab for the one that needs most.
Result<std::vector<TrackingInput>> inputs_of_getters(ResidentTracking& shared, const TrackingPlan& first,
                                                     std::uint32_t& slab_words) {
  std::vector<TrackingInput> inputs(getters_of_actors);
  for (std::uint32_t getter = 0; getter < getters_of_actors; ++getter) {
    TrackingPlan plan = first;
    plan.getter = getter;
    if (!check_plan_and_field(plan, *shared.source)) continue;
    CGL_TRY_ASSIGN(inputs[getter], shared.field->input_for(plan, nullptr, shared.tables.emplace_back()));
    slab_words = std::max({slab_words, kernel::slab_layout(inputs[getter], true).words,
                           kernel::slab_layout(inputs[getter], false).words});
  }
  return inputs;
}

template <class T>
Result<std::unique_ptr<Buffer>> on_device(Device& device, Queue& queue, std::span<const T> values) {
  CGL_TRY_ASSIGN(std::unique_ptr<Buffer> buffer, device.allocate(values.size_bytes()));
  CGL_TRY(upload(queue, *buffer, values));
  CGL_TRY(queue.synchronise());
  return buffer;
}

Result<MappedPiece> mapped_piece(ring::ResidentGrid& grid, std::uint64_t bytes) {
  CGL_TRY_ASSIGN(const ring::MappedMemory memory, grid.scratch(bytes));
  CGL_TRY_ASSIGN(const BufferHandle handle, grid.buffers().add_borrowed(memory.device, bytes, 0, {}));
  return MappedPiece{handle, {memory.host, static_cast<std::size_t>(bytes)}};
}

// What a body is given, whatever its groups are: the same members as ResidentTrackingBody.
struct BodyMembers {
  const TrackingInput* inputs;
  const ResidentTrackingLayout* layout;
  std::uint32_t* memory;
};

Status open_grid(ResidentTracking& shared, Device& device, std::unique_ptr<ring::ResidentBackend> backend,
                 const TrackingPlan& first) {
  const ResidentTrackingOptions& options = shared.options;
  std::uint32_t slab_words = 0;
  CGL_TRY_ASSIGN(const std::vector<TrackingInput> inputs, inputs_of_getters(shared, first, slab_words));
  const std::uint32_t groups = std::max(1u, options.lanes / numerics::lane_count);
  const ResidentTrackingLayout layout =
      ResidentTrackingLayout::make(options.most_chunk_seeds, options.most_pages, groups, slab_words);
  CGL_TRY_ASSIGN(const auto queue, device.create_queue());
  CGL_TRY_ASSIGN(shared.inputs, on_device(device, *queue, std::span<const TrackingInput>(inputs)));
  CGL_TRY_ASSIGN(shared.layout, on_device(device, *queue, std::span<const ResidentTrackingLayout>(&layout, 1)));
  CGL_TRY_ASSIGN(const std::uint32_t most, backend->most_seats(options.lanes, 0));
  const std::uint32_t actors = std::min(most, options.actors);
  if (actors == 0) return fail(ErrorKind::unavailable, "device {}: no tracking actor fits", device.id());
  const std::uint64_t actor_bytes = std::uint64_t{layout.words} * sizeof(std::uint32_t);
  CGL_TRY_ASSIGN(shared.actor_memory, device.allocate(actor_bytes * actors));

  const std::uint64_t request_bytes = tracking_request_bytes(options.most_request_seeds, true);
  const std::uint32_t shared_parts = parts_per_actor * actors, parts = shared_parts + options.requests;
  constexpr std::uint64_t alignment_bytes = 256;
  ring::GridOptions grid;
  grid.seats = actors;
  grid.lanes = options.lanes;
  grid.ring_capacity = 256;
  grid.edges = 1;
  grid.buffers = std::max(64u, 2 * (options.requests + parts));
  grid.scratch_bytes =
      options.requests * (request_bytes + alignment_bytes) + parts * (options.part_bytes + alignment_bytes);
  CGL_TRY_ASSIGN(shared.grid, ring::ResidentGrid::open(std::move(backend), grid));
  for (std::uint32_t i = 0; i < options.requests; ++i) {
    RequestPlace place;
    CGL_TRY_ASSIGN(place.request, mapped_piece(*shared.grid, request_bytes));
    CGL_TRY_ASSIGN(place.part, mapped_piece(*shared.grid, options.part_bytes));
    shared.places.add(place);
  }
  for (std::uint32_t i = 0; i < shared_parts; ++i) {
    CGL_TRY_ASSIGN(const MappedPiece part, mapped_piece(*shared.grid, options.part_bytes));
    shared.parts.add(part);
  }
  CGL_TRY_ASSIGN(shared.runtime, ring::Runtime::create());
  for (std::uint32_t i = 0; i < actors; ++i) {
    const BodyMembers members{
        static_cast<const TrackingInput*>(shared.inputs->device_pointer()),
        static_cast<const ResidentTrackingLayout*>(shared.layout->device_pointer()),
        static_cast<std::uint32_t*>(shared.actor_memory->device_pointer()) + std::size_t{layout.words} * i};
    ring::ActorOptions actor;
    actor.inbox_capacity = 64;
    actor.outbox_capacity = 64;
    actor.stall_limit = longest_chunk;
    CGL_TRY_ASSIGN(ring::ActorHandle handle,
                   shared.grid->launch(*shared.runtime, fmt::format("track-{}", i), resident_tracking_body,
                                       std::as_bytes(std::span(&members, 1)), ring::RingKind::fast, actor));
    CGL_TRY(handle->activate());
    shared.actors.push_back(std::move(handle));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TrackingActors>> start_resident_tracking(Device& device,
                                                                std::unique_ptr<ring::ResidentBackend> backend,
                                                                std::shared_ptr<const Field> field,
                                                                const TrackingPlan& first,
                                                                const ResidentTrackingOptions& options) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<TrackingActors>> {
    CGL_TRY(check_plan_and_field(first, *field));
    auto shared = std::make_shared<ResidentTracking>();
    shared->options = options;
    shared->memory = WorkingMemory::of(device);
    shared->source = std::move(field);
    shared->field = std::make_unique<PagedField>(device, PagedTrackerOptions{});
    CGL_TRY(shared->field->bring(*shared->source, {}, 0));
    CGL_TRY(open_grid(*shared, device, std::move(backend), first));
    return std::make_unique<ResidentTrackingActors>(std::move(shared));
  });
}

}  // namespace cingulum
