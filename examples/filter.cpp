// An actor with memory: it keeps a moving average of a signal and passes on only what lies far from it. Paused, it
// keeps what waits; resumed, it goes on with the state that it had.
#include <chrono>
#include <cstdio>

#include "ring/actor/runtime.hpp"

using namespace cingulum;
using namespace cingulum::ring;

struct Sample {
  static constexpr const char* message_name = "Sample";
  double value = 0;
};

struct Filter {
  double threshold = 3;
  struct State {  // shared by the actor's lanes, zero at the start
    double average;
  };

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    State& state = context.template state<State>();
    while (context.receive(message)) {
      const double value = payload<Sample>(message).value;
      const double off = value - state.average;
      context.sync();  // every lane has read the average before one changes it
      if (context.lane() == 0) state.average += 0.1 * off;
      if (off > threshold || off < -threshold) context.send(message);
    }
    return 0;
  }
};

Status run() {
  CGL_TRY_ASSIGN(const auto runtime, Runtime::create());
  CGL_TRY_ASSIGN(const ActorHandle filter, runtime->launch("filter", Filter{}));
  CGL_TRY(filter->activate());
  for (const double value : {0.5, 0.1, 9.0, 0.2}) CGL_TRY(filter->send(make_message(Sample{value})));
  CGL_TRY(filter->deactivate());
  for (const double value : {-0.3, -7.0}) CGL_TRY(filter->send(make_message(Sample{value})));
  CGL_TRY(filter->reactivate());
  // Everything that was sent is worked on before it ends; what it answered can still be read.
  CGL_TRY_ASSIGN(const TerminationReport report, filter->terminate(Termination::drain(std::chrono::seconds(5))));
  for (auto seen = filter->receive(Nanoseconds(0)); seen; seen = filter->receive(Nanoseconds(0))) {
    std::printf("unusual: %g\n", payload<Sample>(*seen).value);
  }
  std::printf("dropped: %llu\n", static_cast<unsigned long long>(report.dropped));
  return {};
}

int main() {
  return run() ? 0 : 1;
}
