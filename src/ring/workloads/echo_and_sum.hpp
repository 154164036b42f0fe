// The actors of the extended workload (latency, streaming, concurrency): one that answers what it gets, one that sums
// the numbers of a buffer, one that sums their squares. Launched by ring/workloads/extended.cpp on any backend.
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"
#include "ring/workloads/lane_sums.hpp"

namespace cingulum::ring {

struct Ping {
  static constexpr const char* message_name = "Ping";
  double value = 0;
};

struct SumRequest {
  static constexpr const char* message_name = "SumRequest";
  BufferHandle values;  // doubles; the message carries mark_handle
};

struct SumReply {
  static constexpr const char* message_name = "SumReply";
  double sum = 0;
};

// Codes with which the bodies of the workloads fail.
enum WorkloadFailure : int { failure_stale_buffer = 1, failure_unknown_message = 2, failure_bad_graph = 3 };

struct EchoBody {
  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) context.send(message);
    return 0;
  }
};

// The same for streams: where the context hands out batches, each lane answers messages of its own.
struct BatchEchoBody {
  struct Same {
    CGL_HD void operator()(Message&) const {}
  };

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    if constexpr (requires { context.answer_batch(Same{}); }) {
      while (context.answer_batch(Same{})) {
      }
      return 0;
    } else {
      return EchoBody{}(context);
    }
  }
};

template <bool squares>
struct SumBody {
  struct State {
    double strands[strand_count];
  };

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      if (!holds<SumRequest>(message)) return failure_unknown_message;
      const BufferHandle handle = payload<SumRequest>(message).values;
      const double* const values = static_cast<const double*>(context.buffer(handle));
      if (values == nullptr) return failure_stale_buffer;
      const double sum =
          join_over_lanes(context, context.template state<State>().strands,
                          static_cast<std::uint32_t>(handle.bytes / sizeof(double)), Term{values}, Add{});
      context.send(make_reply(message, SumReply{sum}));
    }
    return 0;
  }

  struct Term {
    const double* values;
    CGL_HD double operator()(std::uint32_t i) const { return squares ? values[i] * values[i] : values[i]; }
  };
};

}  // namespace cingulum::ring
