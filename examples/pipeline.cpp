// Two actors in a row, wired to each other: the first doubles, the second adds one. The host writes into the first and
// reads from the last; what lies between them never passes through it.
#include <chrono>
#include <cstdio>

#include "ring/actor/runtime.hpp"

using namespace cingulum;
using namespace cingulum::ring;

struct Number {
  static constexpr const char* message_name = "Number";
  double value = 0;
};

// Members of a body are copied with it; here they say which line a x + b it computes.
struct Line {
  double slope = 1;
  double offset = 0;

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const double x = payload<Number>(message).value;
      context.send(make_reply(message, Number{slope * x + offset}));
    }
    return 0;
  }
};

Status run() {
  CGL_TRY_ASSIGN(const auto runtime, Runtime::create());
  CGL_TRY_ASSIGN(const ActorHandle doubled, runtime->launch("double", Line{2, 0}));
  CGL_TRY_ASSIGN(const ActorHandle plus_one, runtime->launch("plus-one", Line{1, 1}));
  CGL_TRY(runtime->pipeline({"double", "plus-one"}));
  CGL_TRY(doubled->activate());
  CGL_TRY(plus_one->activate());
  for (const double x : {5.0, 10.0, 20.0}) CGL_TRY(doubled->send(make_message(Number{x})));
  for (int i = 0; i < 3; ++i) {
    CGL_TRY_ASSIGN(const Message answer, plus_one->receive(std::chrono::seconds(5)));
    std::printf("%g\n", payload<Number>(answer).value);
  }
  return {};
}

int main() {
  const Status status = run();
  if (!status) std::fprintf(stderr, "pipeline: %s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
