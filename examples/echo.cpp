// The smallest actor: it answers what it gets. Sends three messages and prints the answers.
#include <chrono>
#include <cstdio>

#include "ring/actor/runtime.hpp"

using namespace cingulum;
using namespace cingulum::ring;

// A message is a plain struct with a name, at most 48 bytes.
struct Greeting {
  static constexpr const char* message_name = "Greeting";
  int number = 0;
};

// A body is templated over its context, so that the same code runs as a CPU thread and as a block of a GPU.
struct Echo {
  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) context.send(message);
    return 0;
  }
};

Status run() {
  CGL_TRY_ASSIGN(const auto runtime, Runtime::create());
  CGL_TRY_ASSIGN(const ActorHandle echo, runtime->launch("echo", Echo{}));
  CGL_TRY(echo->activate());
  for (int i = 1; i <= 3; ++i) {
    // A request is matched with its answer, however many are on their way.
    CGL_TRY_ASSIGN(const Message answer, runtime->request("echo", make_message(Greeting{i}), std::chrono::seconds(5)));
    std::printf("echo of %d: %d\n", i, payload<Greeting>(answer).number);
  }
  const ShutdownReport report = runtime->shutdown();
  std::printf("%s\n", report.errors.empty() ? "stopped" : report.errors[0].c_str());
  return {};
}

int main() {
  const Status status = run();
  if (!status) std::fprintf(stderr, "echo: %s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
