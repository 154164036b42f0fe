#include "ring/child/child_host.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "ring/child/child_actor.hpp"
#include "ring/resident/look_again.hpp"

extern char** environ;

namespace cingulum::ring {
namespace {

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) return "lost its device";
  return fmt::format("ended with code {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

// A copy of a descriptor that no number below `above` names.
Result<int> copy_above(int descriptor, int above) {
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, above);
  if (copy < 0) return fail(ErrorKind::unavailable, "a descriptor for a child process: {}", std::strerror(errno));
  return copy;
}

// Starts `command` with these descriptors as 3 and 4.
Result<pid_t> spawn(const std::vector<std::string>& command, int control, int memory) {
  // By way of copies that are neither 3 nor 4, since either may be the other's goal; and that nobody else has.
  constexpr int first_aside = std::max(control_descriptor, memory_descriptor) + 1;
  CGL_TRY_ASSIGN(const int control_aside, copy_above(control, first_aside));
  auto memory_aside = copy_above(memory, first_aside);
  if (!memory_aside) {
    ::close(control_aside);
    return tl::make_unexpected(std::move(memory_aside.error()));
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, control_aside, control_descriptor);
  ::posix_spawn_file_actions_adddup2(&actions, *memory_aside, memory_descriptor);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t process = -1;
  const int code = ::posix_spawnp(&process, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(control_aside);
  ::close(*memory_aside);
  if (code != 0) {
    return fail(ErrorKind::unavailable, "starting {} for the device: {}", command.front(), std::strerror(code));
  }
  return process;
}

}  // namespace

Result<std::shared_ptr<ChildHost>> ChildHost::start(const ChildOptions& options) {
  if (options.command.empty()) return fail(ErrorKind::invalid_argument, "a child host needs a program to start");
  std::shared_ptr<ChildHost> host(new ChildHost(options));
  host->memory_file_ = ::memfd_create("cingulum-ring", MFD_CLOEXEC);
  if (host->memory_file_ < 0 || ::ftruncate(host->memory_file_, sizeof(ChildMemory)) != 0) {
    return fail(ErrorKind::out_of_memory, "shared memory for a child process: {}", std::strerror(errno));
  }
  void* const memory = ::mmap(nullptr, sizeof(ChildMemory), PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_file_, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorKind::out_of_memory, "shared memory for a child process: {}", std::strerror(errno));
  }
  host->memory_ = static_cast<ChildMemory*>(memory);
  {
    const std::lock_guard lock(host->control_mutex_);
    CGL_TRY(host->ensure_child());
  }
  host->carrier_ = std::thread([weak = std::weak_ptr(host)] {
    LookAgain again(WaitStrategy{WaitMode::spin_then_park, 200});
    for (;;) {
      auto self = weak.lock();
      if (self == nullptr || self->stop_) return;
      const bool moved = self->carry_messages();
      self->carry();
      self.reset();
      if (moved) again.reset();
      again.pause();
    }
  });
  return host;
}

ChildHost::~ChildHost() {
  stop_ = true;
  join_or_let_go(carrier_);
  if (process_ > 0) {
    ChildRequest leave;
    leave.command = ChildCommand::leave;
    static_cast<void>(::send(control_, &leave, sizeof leave, MSG_NOSIGNAL));
    const std::uint64_t deadline = deadline_from_now(std::chrono::seconds(3));
    int status = 0;
    while (::waitpid(process_, &status, WNOHANG) == 0) {
      if (steady_now_ns() > deadline) {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  if (control_ >= 0) ::close(control_);
  if (memory_ != nullptr) ::munmap(memory_, sizeof(ChildMemory));
  if (memory_file_ >= 0) ::close(memory_file_);
}

Status ChildHost::ensure_child() {
  if (process_ > 0) return {};
  if (control_ >= 0) ::close(control_);
  control_ = -1;
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(ErrorKind::unavailable, "a socket for a child process: {}", std::strerror(errno));
  }
  {
    // Nobody is at the other end: the memory starts anew.
    const std::lock_guard input(input_mutex_);
    const std::lock_guard output(output_mutex_);
    // Word by word: telemetry reads the counters at any time.
    static_assert(sizeof(ChildMemory) % sizeof(std::uint64_t) == 0);
    auto* const words = reinterpret_cast<std::uint64_t*>(memory_);
    for (std::size_t i = 0; i < sizeof(ChildMemory) / sizeof(std::uint64_t); ++i) {
      HostAtomics::store_relaxed(words[i], std::uint64_t{0});
    }
    to_child_ = BulkWriter<ChildSlot>(
        {memory_->to_child, &memory_->to_child_writer, &memory_->to_child_reader, child_ring_capacity});
    from_child_ = BulkReader<ChildSlot>(
        {memory_->from_child, &memory_->from_child_writer, &memory_->from_child_reader, child_ring_capacity});
  }
  auto started = spawn(options_.command, ends[1], memory_file_);
  ::close(ends[1]);
  if (!started) {
    ::close(ends[0]);
    return tl::make_unexpected(std::move(started.error()));
  }
  control_ = ends[0];
  process_ = *started;
  ++starts_;
  return {};
}

Result<ChildReply> ChildHost::ask(ChildRequest request) {
  const std::lock_guard lock(control_mutex_);
  auto reply = ask_child(request);
  // A child that has lost its device takes a while to go. What is launched then waits for its successor, instead of
  // using up the restarts that its actor has.
  if (!reply && reply.error().kind() == ErrorKind::closed && request.command == ChildCommand::launch) {
    const std::uint64_t deadline = deadline_from_now(options_.answer_limit);
    while (process_ > 0 && !stop_ && steady_now_ns() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (process_ <= 0) return ask_child(request);
  }
  return reply;
}

Result<ChildReply> ChildHost::ask_child(const ChildRequest& request) {
  CGL_TRY(ensure_child());
  if (::send(control_, &request, sizeof request, MSG_NOSIGNAL) < 0) {
    return fail(ErrorKind::closed, "the process of the device is gone: {}", std::strerror(errno));
  }
  const std::uint64_t limit = static_cast<std::uint64_t>(options_.answer_limit.count()) + request.timeout_ns;
  const std::uint64_t deadline = steady_now_ns() + limit;
  for (;;) {
    pollfd waiting{control_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, 10);
    if (ready > 0) {
      ChildReply reply;
      const ssize_t got = ::recv(control_, &reply, sizeof reply, 0);
      if (got != static_cast<ssize_t>(sizeof reply)) {
        return fail(ErrorKind::closed, "the process of the device ended before it answered");
      }
      reply.text[sizeof reply.text - 1] = '\0';
      if (reply.ok == 0) {
        return tl::make_unexpected(Error(static_cast<ErrorKind>(reply.error_kind), reply.text));
      }
      return reply;
    }
    if (steady_now_ns() > deadline) {
      end_child(SIGKILL);
      return fail(ErrorKind::timed_out, "the process of the device does not answer and was ended");
    }
  }
}

PutStatus ChildHost::put(const Message& message, std::uint32_t actor, std::uint32_t generation) {
  const std::lock_guard lock(input_mutex_);
  if (process_ <= 0) return PutStatus::closed;
  return to_child_.try_put({message, actor, generation, 0});
}

bool ChildHost::carry_messages() {
  const std::lock_guard lock(output_mutex_);
  bool moved = false;
  ChildSlot slot;
  while (from_child_.try_get(slot) == GetStatus::taken) {
    moved = true;
    if (slot.actor >= child_actor_count) continue;
    std::shared_ptr<ChildActor> actor;
    {
      const std::lock_guard actors(actors_mutex_);
      actor = actors_[slot.actor].lock();
      if (slot.message.has(mark_control) && holds<ChildEvent>(slot.message)) {
        const auto event = payload<ChildEvent>(slot.message);
        if (event.kind == ChildEvent::lost) {
          last_end_ = std::string(memory_->lost_text, strnlen(memory_->lost_text, sizeof memory_->lost_text));
        }
      }
    }
    if (actor != nullptr && actor->generation_ == slot.generation) actor->take(slot);
  }
  return moved;
}

// What becomes of the child.
void ChildHost::carry() {
  const pid_t process = process_;
  if (process <= 0) return;
  int status = 0;
  if (::waitpid(process, &status, WNOHANG) == process) {
    static_cast<void>(carry_messages());
    // Before another child can be started, which begins with cleared counters.
    std::vector<std::uint64_t> received(child_actor_count);
    for (std::uint32_t i = 0; i < child_actor_count; ++i) received[i] = counters(i).received;
    process_ = -1;
    child_ended(end_text(status), received);
    return;
  }
  const std::uint64_t now = steady_now_ns();
  // A host that was itself stopped must not take the child's silence for death: both may have been.
  const bool was_away = now - carried_ns_ > static_cast<std::uint64_t>(options_.silence_limit.count()) / 4;
  carried_ns_ = now;
  const std::uint64_t beat = HostAtomics::load_relaxed(memory_->child_beat.position);
  if (beat != seen_beat_ || beat == 0 || was_away) {  // 0: it is still opening its device
    seen_beat_ = beat;
    beat_seen_ns_ = now;
  } else if (now - beat_seen_ns_ > static_cast<std::uint64_t>(options_.silence_limit.count())) {
    if (control_mutex_.try_lock()) {  // a command that takes long is no silence
      control_mutex_.unlock();
      end_child(SIGKILL);
    }
    beat_seen_ns_ = now;
  }
}

void ChildHost::end_child(int signal) {
  const pid_t process = process_;
  if (process > 0) ::kill(process, signal);
}

void ChildHost::child_ended(const std::string& how, std::span<const std::uint64_t> received) {
  std::vector<std::shared_ptr<ChildActor>> actors;
  std::string text = how;
  {
    const std::lock_guard lock(actors_mutex_);
    if (!last_end_.empty() && how == "lost its device") text += ": " + last_end_;
    last_end_ = text;
    actors = living(actors_);
  }
  if (!stop_) log_warning("the process of a device {}", text);
  for (const auto& actor : actors) actor->child_ended(text, received);
}

std::string ChildHost::last_end() const {
  const std::lock_guard lock(actors_mutex_);
  return last_end_;
}

void ChildHost::let_go(std::uint32_t actor) {
  const std::lock_guard lock(actors_mutex_);
  actors_[actor].reset();
  taken_[actor] = false;
}

ActorCounters ChildHost::counters(std::uint32_t actor) const {
  return read_counters(memory_->counters[actor]);
}

void ChildHost::give_credit(std::uint32_t actor, std::uint64_t outputs, std::uint64_t parts) {
  ChildCredit& credit = memory_->credit[actor];
  HostAtomics::store_release(credit.outputs, outputs);
  HostAtomics::store_release(credit.parts, parts);
}

Result<ActorHandle> ChildHost::launch(Runtime& runtime, std::string name, std::string_view body,
                                      std::span<const std::byte> arguments, RingKind kind,
                                      const ActorOptions& options) {
  if (arguments.size() > body_capacity || body.size() >= sizeof ChildRequest{}.body) {
    return fail(ErrorKind::invalid_argument, "launching '{}': its body's name or members are too long", name);
  }
  CGL_TRY(check_options(name, options));
  auto actor = std::make_shared<ChildActor>(std::move(name), runtime.next_number(), shared_from_this(),
                                            std::string(body), arguments, kind, options, runtime.services());
  return launch_and_adopt(runtime, actor);
}

}  // namespace cingulum::ring
