// A host of actors that is to die: it brings them into a state of their life cycle, says "ready" and goes on until a
// signal ends it, or until a line on its standard input makes it call exit() with everything still running.
// test_host_death.py watches what it leaves behind.
//   ring_host cpu|child|emulated|cuda created|launched|active|deactivated|terminating|failed
// "child" runs the actors in a process of its own, which this program starts as `ring_host serve`.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "ring/child/child_host.hpp"
#include "ring/child/child_service.hpp"
#include "ring/soak/soak_place.hpp"

namespace cingulum::ring::soak {
namespace {

using namespace std::chrono_literals;

SinkLedger own_sink;
SenderLedger own_sender;

// The actors of the child: CPU threads with ledgers of the child's.
class CpuWork final : public ChildWork {
 public:
  Result<ActorHandle> launch(Runtime& runtime, const std::string& name, const std::string& body,
                             std::span<const std::byte>, RingKind, const ActorOptions& options) override {
    if (body == "sink") return runtime.launch(name, Sink{&own_sink}, options);
    return runtime.launch(name, Source{&own_sender, {}, 0}, options);
  }
};

struct Stage {
  Runtime* runtime = nullptr;
  std::function<Result<ActorHandle>(const char* body)> launch;
  // What must live as long.
  std::unique_ptr<Runtime> own_runtime;
  std::unique_ptr<Place> place;
  std::shared_ptr<ChildHost> child;
};

Result<Stage> set_up(const std::string& device) {
  Stage stage;
  if (device == "child") {
    CGL_TRY_ASSIGN(stage.own_runtime, Runtime::create());
    ChildOptions options;
    options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "serve"};
    CGL_TRY_ASSIGN(stage.child, ChildHost::start(options));
    stage.runtime = stage.own_runtime.get();
    stage.launch = [runtime = stage.runtime, child = stage.child](const char* body) {
      return child->launch(*runtime, body, body, Poison{});
    };
    return stage;
  }
  CGL_TRY_ASSIGN(stage.place, Place::open(device, 4, 20s));
  CGL_TRY_ASSIGN(const MappedMemory sink, stage.place->memory(sizeof(SinkLedger)));
  CGL_TRY_ASSIGN(const MappedMemory sender, stage.place->memory(sizeof(SenderLedger)));
  stage.runtime = &stage.place->runtime();
  stage.launch = [place = stage.place.get(), sink, sender](const char* body) {
    return std::string_view(body) == "sink"
               ? place->launch(body, Sink{reinterpret_cast<SinkLedger*>(sink.device)}, RingKind::bulk, {})
               : place->launch(body, Source{reinterpret_cast<SenderLedger*>(sender.device), {}, 0}, RingKind::fast, {});
  };
  return stage;
}

Status bring_to(Stage& stage, const std::string& state) {
  if (state == "created") return {};
  CGL_TRY_ASSIGN(const ActorHandle sink, stage.launch("sink"));
  CGL_TRY_ASSIGN(const ActorHandle source, stage.launch("source"));
  if (state == "launched") return {};
  for (const ActorHandle& actor : {sink, source}) CGL_TRY(actor->activate());
  if (state == "active") {
    std::thread([sink] {
      for (std::uint64_t next = 0; sink->send(make(0, next, {}, true)); ++next) {
      }
    }).detach();
    std::thread([source] {
      while (source->send(make_message(Go{64}), {.timeout = 1s})) static_cast<void>(source->receive(1s));
    }).detach();
    return {};
  }
  if (state == "deactivated") {
    CGL_TRY(sink->deactivate());
    for (std::uint64_t next = 0; sink->try_send(make(0, next, {}, true)) == PutStatus::stored; ++next) {
    }
    return {};
  }
  if (state == "terminating") {
    // More to make than there is time for: it stays at it.
    CGL_TRY(source->send(make_message(Go{std::uint64_t{1} << 40})));
    std::thread([source] { static_cast<void>(source->terminate(Termination::drain(12s))); }).detach();
    while (source->state() != ActorState::terminating) std::this_thread::sleep_for(1ms);
    return {};
  }
  if (state == "failed") {
    CGL_TRY(sink->send(make_message(Poison{})));
    while (sink->state() != ActorState::failed) std::this_thread::sleep_for(1ms);
    return {};
  }
  return fail(ErrorKind::invalid_argument, "no state '{}'", state);
}

int run(int count, char** values) {
  if (count == 2 && std::string_view(values[1]) == "serve") {
    return serve_parent([]() -> Result<std::unique_ptr<ChildWork>> { return std::make_unique<CpuWork>(); });
  }
  if (count != 3) {
    fmt::print(stderr, "ring_host DEVICE STATE\n");
    return 2;
  }
  auto stage = set_up(values[1]);
  const Status there = stage ? bring_to(*stage, values[2]) : Status(tl::make_unexpected(stage.error()));
  if (!there) {
    fmt::print(stderr, "ring_host: {}\n", there.error().message());
    return 1;
  }
  fmt::print("ready\n");
  std::fflush(stdout);
  // Not for ever, whatever becomes of the one who watches.
  std::thread([] {
    std::this_thread::sleep_for(15s);
    std::_Exit(4);
  }).detach();
  static_cast<void>(std::getchar());
  std::exit(3);  // the actors and all that holds them are still there
}

}  // namespace
}  // namespace cingulum::ring::soak

int main(int count, char** values) {
  return cingulum::ring::soak::run(count, values);
}
