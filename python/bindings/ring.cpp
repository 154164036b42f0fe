// Actors outside of Python: bodies of the library by name, on its threads or in a grid on a GPU, and CUDA bodies from
// text. Payloads come and go as bytes, batches as arrays of them; what they mean is cingulum/ring/native.py's.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "answer_watcher.hpp"
#include "base/json_text.hpp"
#include "base/settings.hpp"
#include "device/registry.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "parts.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/cuda/user_program.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/telemetry/gpu_monitor.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/workload_place.hpp"

// The library has these where CUDA is compiled in; without, their addresses are null.
namespace cingulum::ring {
[[gnu::weak]] Result<CudaProgram> compile_cuda_program(Device&, std::string, const std::string&,
                                                       const std::vector<UserActor>&);
[[gnu::weak]] Result<std::unique_ptr<ResidentBackend>> make_cuda_backend(Device&, CudaProgram);
}  // namespace cingulum::ring

namespace cingulum::python {
namespace {

using Json = nlohmann::ordered_json;
using ring::Message;
using ring::Nanoseconds;
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstBytes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr Nanoseconds own_look{20'000};  // an asking thread looks for its answer this long before it sleeps
constexpr std::uint64_t signals_every_ns = 50'000'000;
constexpr std::size_t batch = 256;

Nanoseconds duration(double seconds) {
  // Less than 0 stands for no limit.
  if (seconds < 0 || seconds > 1e9) return ring::no_time_limit;
  return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

std::uint64_t moment(double seconds) {
  return ring::deadline_after(ring::steady_now_ns(), duration(seconds));
}

void look_for_signals() {
  const nb::gil_scoped_acquire with_gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Message message_of(std::uint32_t type, const char* bytes, std::size_t size) {
  Message message;
  message.header.type = type;
  message.set_band(ring::Band::normal);
  message.set_payload_bytes(static_cast<std::uint32_t>(size));
  std::memcpy(message.payload, bytes, size);
  return message;
}

void check_size(std::size_t size) {
  if (size > ring::payload_capacity) {
    throw NativeError(Error(ErrorKind::invalid_argument, fmt::format("a message of {} bytes: at most {} fit into one",
                                                                     size, ring::payload_capacity)));
  }
}

nb::bytes bytes_of(const Message& message) {
  return nb::bytes(reinterpret_cast<const char*>(message.payload), message.payload_bytes());
}

const char* upper_case_state(ring::ActorState state) {
  constexpr const char* names[] = {"CREATED",     "LAUNCHED",   "ACTIVE", "DEACTIVATED",
                                   "TERMINATING", "TERMINATED", "FAILED"};
  return names[static_cast<std::size_t>(state)];
}

// Where actors live, and what keeps it alive: devices go last.
struct Home {
  OpenedDevice opened;
  std::unique_ptr<ring::WorkloadPlace> place;  // bodies of the library
  std::unique_ptr<ring::Runtime> own_runtime;  // bodies from text
  std::shared_ptr<ring::ResidentGrid> grid;
  AnswerWatcher watcher;

  ring::Runtime& runtime() { return place != nullptr ? place->runtime() : *own_runtime; }
  ~Home() {
    if (own_runtime != nullptr) own_runtime->shutdown(ring::Termination::discard());
    if (grid != nullptr) static_cast<void>(grid->close());
  }
};

class NativeActor {
 public:
  NativeActor(std::shared_ptr<Home> home, ring::ActorHandle actor) : home_(std::move(home)), actor_(std::move(actor)) {}

  [[nodiscard]] std::string state() const { return upper_case_state(actor_->state()); }
  [[nodiscard]] std::string failure() const {
    const auto failure = actor_->failure();
    return failure ? failure->message : std::string();
  }
  void operate(const std::string& operation) {
    refuse_after_fork();
    Status done;
    {
      const nb::gil_scoped_release without_gil;
      if (operation == "activate") done = actor_->activate();
      if (operation == "deactivate") done = actor_->deactivate();
      if (operation == "reactivate") done = actor_->reactivate();
    }
    throw_failure(std::move(done));
  }

  nb::bytes request(std::uint32_t type, const nb::bytes& payload, double timeout) {
    refuse_after_fork();
    check_size(payload.size());
    const Message message = message_of(type, payload.c_str(), payload.size());
    Result<Message> answer = tl::make_unexpected(Error(ErrorKind::timed_out, "no answer came in time"));
    {
      const nb::gil_scoped_release without_gil;
      answer = answer_to(message, timeout);
    }
    return bytes_of(value_or_throw(std::move(answer)));
  }

  // The answer, where it comes within microseconds; else None, and the watcher says when `number` is answered.
  nb::object ask(std::uint32_t type, const nb::bytes& payload, double timeout, std::uint64_t number) {
    refuse_after_fork();
    check_size(payload.size());
    const Message message = message_of(type, payload.c_str(), payload.size());
    std::optional<Result<Message>> answer;
    {
      const nb::gil_scoped_release without_gil;
      Result<ring::PendingReply> pending =
          home_->runtime().request_watched(*actor_, message, own_look, {.timeout = Nanoseconds(0)});
      if (!pending) {
        answer = tl::make_unexpected(std::move(pending.error()));
      } else if (look_for_answer(*pending, ring::deadline_after(ring::steady_now_ns(), own_look))) {
        answer = pending->wait(Nanoseconds(0));
      } else {
        home_->watcher.add(number, std::move(*pending), moment(timeout));
      }
    }
    if (!answer) return nb::none();
    return bytes_of(value_or_throw(std::move(*answer)));
  }

  // The sum of numbers that are too many for a message: they go through memory that the actor sees.
  nb::bytes request_buffer(const nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>& values,
                           double timeout) {
    refuse_after_fork();
    Result<Message> answer = tl::make_unexpected(Error(ErrorKind::invalid_state, "no actor of the library"));
    {
      const nb::gil_scoped_release without_gil;
      answer = answer_to_buffer({values.data(), values.size()}, timeout);
    }
    return bytes_of(value_or_throw(std::move(answer)));
  }

  void send(std::uint32_t type, const nb::bytes& payload, double timeout) {
    refuse_after_fork();
    check_size(payload.size());
    const Message message = message_of(type, payload.c_str(), payload.size());
    Status sent;
    {
      const nb::gil_scoped_release without_gil;
      const std::uint64_t deadline = moment(timeout);
      // In pieces, so that Ctrl-C is seen.
      do {
        sent = actor_->send(message, {.timeout = piece_until(deadline)});
        if (sent || sent.error().kind() != ErrorKind::timed_out) break;
        look_for_signals();
      } while (ring::steady_now_ns() < deadline);
    }
    throw_failure(std::move(sent));
  }

  nb::bytes receive(double timeout) {
    refuse_after_fork();
    Result<Message> got = tl::make_unexpected(Error(ErrorKind::timed_out, "no message came in time"));
    {
      const nb::gil_scoped_release without_gil;
      const std::uint64_t deadline = moment(timeout);
      do {
        got = actor_->receive(piece_until(deadline));
        if (got || got.error().kind() != ErrorKind::timed_out) break;
        look_for_signals();
      } while (ring::steady_now_ns() < deadline);
    }
    return bytes_of(value_or_throw(std::move(got)));
  }

  // One answer for each message, in order. Rows of `out` are as long as answers are.
  void exchange(std::uint32_t type, const ConstBytes& in, const Bytes& out, double timeout) {
    refuse_after_fork();
    check_size(in.shape(1));
    check_size(out.shape(1));
    Status done;
    {
      const nb::gil_scoped_release without_gil;
      done = exchange_all(type, in, out, timeout);
    }
    throw_failure(std::move(done));
  }

  std::tuple<std::uint64_t, std::uint64_t> terminate(bool drain, double timeout) {
    refuse_after_fork();
    Result<ring::TerminationReport> report = ring::TerminationReport{};
    {
      const nb::gil_scoped_release without_gil;
      const Nanoseconds limit = duration(timeout);
      report = home_->runtime().terminate(actor_->name(),
                                          drain ? ring::Termination::drain(limit) : ring::Termination::discard(limit));
    }
    const ring::TerminationReport counted = value_or_throw(std::move(report));
    return {counted.drained, counted.dropped};
  }

  [[nodiscard]] std::string telemetry() const {
    const ring::ActorTelemetry seen = actor_->telemetry();
    return json_text(Json{{"name", seen.name},
                          {"device", seen.backend},
                          {"state", upper_case_state(seen.state)},
                          {"received", seen.received},
                          {"sent", seen.sent},
                          {"refused", seen.refused},
                          {"waiting", seen.inbox_depth},
                          {"unread", seen.outbox_depth},
                          {"failures", seen.failures},
                          {"last_failure", seen.last_failure},
                          {"busy_share", seen.busy_share},
                          {"uptime_s", seen.uptime_s},
                          {"messages_per_s", seen.messages_per_s}});
  }

 private:
  static Nanoseconds piece_until(std::uint64_t deadline) {
    const std::uint64_t now = ring::steady_now_ns();
    const std::uint64_t left = deadline > now ? deadline - now : 0;
    return Nanoseconds(static_cast<std::int64_t>(std::min(left, signals_every_ns)));
  }

  Result<Message> answer_to(const Message& message, double timeout) {
    const std::uint64_t deadline = moment(timeout);
    CGL_TRY_ASSIGN(ring::PendingReply pending,
                   home_->runtime().request_watched(*actor_, message, std::min(own_look, duration(timeout)),
                                                    {.timeout = duration(timeout)}));
    if (pending.is_done()) return pending.wait(Nanoseconds(0));
    for (;;) {
      const std::uint64_t now = ring::steady_now_ns();
      const std::uint64_t until =
          deadline - std::min(deadline, now) > signals_every_ns ? now + signals_every_ns : deadline;
      if (look_for_answer(pending, until) || ring::steady_now_ns() >= deadline) return pending.wait(Nanoseconds(0));
      look_for_signals();
    }
  }

  Result<Message> answer_to_buffer(std::span<const double> values, double timeout) {
    if (home_->place == nullptr) return fail(ErrorKind::invalid_state, "bodies from text take messages, no arrays");
    CGL_TRY_ASSIGN(const ring::SharedBuffer buffer, home_->place->share(std::max<std::size_t>(values.size_bytes(), 8)));
    std::memcpy(buffer.bytes.data(), values.data(), values.size_bytes());
    ring::SumRequest request;
    request.values = buffer.handle;
    if (values.empty()) request.values.bytes = 0;
    Result<Message> answer = answer_to(ring::make_buffer_message(request), timeout);
    CGL_TRY(home_->place->release(buffer.handle));
    return answer;
  }

  Status exchange_all(std::uint32_t type, const ConstBytes& in, const Bytes& out, double timeout) {
    const std::size_t count = in.shape(0);
    const std::size_t in_bytes = in.shape(1);
    const std::size_t out_bytes = out.shape(1);
    const std::uint64_t limit = static_cast<std::uint64_t>(
        std::min<std::int64_t>(duration(timeout).count(), std::numeric_limits<std::int64_t>::max()));
    std::vector<Message> outgoing(batch);
    std::vector<Message> incoming(batch);
    std::size_t sent = 0;
    std::size_t ready = 0;  // of outgoing, from `first`
    std::size_t first = 0;
    std::size_t got = 0;
    std::uint64_t last_progress = ring::steady_now_ns();
    std::uint64_t last_look = last_progress;
    std::uint32_t idle = 0;
    while (got < count) {
      if (ready == 0 && sent < count) {
        first = 0;
        ready = std::min(batch, count - sent);
        for (std::size_t i = 0; i < ready; ++i) {
          outgoing[i] = message_of(type, reinterpret_cast<const char*>(in.data()) + (sent + i) * in_bytes, in_bytes);
        }
      }
      const std::uint32_t taken =
          ready == 0 ? 0 : actor_->send_batch(std::span<const Message>(outgoing).subspan(first, ready));
      first += taken;
      ready -= taken;
      sent += taken;
      const std::uint32_t came =
          actor_->receive_batch(std::span(incoming).first(std::min(batch, std::max<std::size_t>(sent - got, 1))));
      for (std::uint32_t i = 0; i < came; ++i) {
        if (incoming[i].payload_bytes() != out_bytes) {
          return fail(ErrorKind::invalid_argument, "actor '{}' answers with {} bytes, {} were expected", actor_->name(),
                      incoming[i].payload_bytes(), out_bytes);
        }
        std::memcpy(out.data() + (got + i) * out_bytes, incoming[i].payload, out_bytes);
      }
      got += came;
      if (taken != 0 || came != 0) {
        idle = 0;
        continue;
      }
      ring::HostAtomics::pause();
      if (++idle % 256 != 0) continue;
      const std::uint64_t now = ring::steady_now_ns();
      if (idle == 256) last_progress = now;
      if (actor_->state() != ring::ActorState::active) {
        return fail(ErrorKind::closed, "actor '{}' is {} after {} of {} answers: {}", actor_->name(),
                    upper_case_state(actor_->state()), got, count, failure());
      }
      if (now - last_progress > limit) {
        return fail(ErrorKind::timed_out, "actor '{}' has given {} of {} answers and is silent", actor_->name(), got,
                    count);
      }
      if (now - last_look > signals_every_ns) {
        last_look = now;
        look_for_signals();
      }
      std::this_thread::yield();
    }
    return {};
  }

  std::shared_ptr<Home> home_;
  ring::ActorHandle actor_;
};

class NativeRuntime {
 public:
  // `source`: the text of bodies in CUDA C++, whose types `bodies` names; empty: the bodies of the library.
  NativeRuntime(const std::string& device, const std::string& source,
                const std::vector<std::tuple<std::string, std::string>>& bodies, std::uint32_t seats,
                std::uint32_t lanes) {
    home_ = std::make_shared<Home>();
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      if (device == "cpu" && source.empty()) {
        CGL_TRY_ASSIGN(home_->place, ring::make_cpu_place(static_cast<std::uint32_t>(default_thread_count())));
        return {};
      }
      CGL_TRY_ASSIGN(const Settings settings, Settings::from_environment());
      CGL_TRY_ASSIGN(home_->opened, open_one_device(settings, device));
      Device* const chosen = home_->opened.device;
      if (chosen->description().backend != Backend::cuda) {
        return fail(ErrorKind::unavailable, "actors run on cpu and on CUDA devices, not on {}", chosen->id());
      }
      if (source.empty()) {
        CGL_TRY_ASSIGN(home_->place, ring::make_cuda_place(*chosen, {.actors = seats, .lanes = lanes}));
        return {};
      }
      return open_text(*chosen, source, bodies, seats, lanes);
    });
  }

  NativeActor launch(const std::string& name, const std::string& body, const nb::bytes& members, bool stream,
                     std::uint32_t inbox, std::uint32_t outbox) {
    const std::string member_bytes(members.c_str(), members.size());
    std::optional<NativeActor> actor;
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      ring::ActorOptions options;
      options.inbox_capacity = inbox;
      options.outbox_capacity = outbox;
      CGL_TRY_ASSIGN(ring::ActorHandle handle, launched(name, body, member_bytes, stream, options));
      CGL_TRY(handle->activate());
      actor.emplace(home_, std::move(handle));
      return {};
    });
    return std::move(*actor);
  }

  [[nodiscard]] std::vector<std::string> names() const { return home_->runtime().names(); }
  void pipeline(const std::vector<std::string>& names) {
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      for (const std::string& name : names) CGL_TRY(home_->runtime().deactivate(name));
      CGL_TRY(home_->runtime().pipeline(names));
      for (const std::string& name : names) CGL_TRY(home_->runtime().reactivate(name));
      return {};
    });
  }
  std::vector<std::string> shutdown(double timeout) {
    std::vector<std::string> errors;
    run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
      errors = home_->runtime().shutdown(ring::Termination::discard(duration(timeout))).errors;
      if (home_->grid != nullptr) CGL_TRY(home_->grid->close());
      return {};
    });
    return errors;
  }

  int answers_descriptor() { return value_or_throw(home_->watcher.open()); }
  void drop(std::uint64_t number) { home_->watcher.drop(number); }
  // (number, payload or None, kind of error, message)
  nb::list take_answers() {
    nb::list answers;
    for (auto& [number, answer] : home_->watcher.take()) {
      if (answer) {
        answers.append(nb::make_tuple(number, bytes_of(*answer), "", ""));
      } else {
        answers.append(nb::make_tuple(number, nb::none(), std::string(error_kind_name(answer.error().kind())),
                                      answer.error().message()));
      }
    }
    return answers;
  }

 private:
  Status open_text(Device& device, const std::string& source,
                   const std::vector<std::tuple<std::string, std::string>>& bodies, std::uint32_t seats,
                   std::uint32_t lanes) {
    if (&ring::compile_cuda_program == nullptr || &ring::make_cuda_backend == nullptr) {
      return fail(ErrorKind::unavailable, "this build has no CUDA");
    }
    std::vector<ring::UserActor> actors;
    for (const auto& [name, type] : bodies) actors.push_back({name, type});
    CGL_TRY_ASSIGN(ring::CudaProgram program, ring::compile_cuda_program(device, "source", source, actors));
    CGL_TRY_ASSIGN(auto backend, ring::make_cuda_backend(device, std::move(program)));
    CGL_TRY_ASSIGN(home_->own_runtime, ring::Runtime::create());
    CGL_TRY_ASSIGN(home_->grid, ring::ResidentGrid::open(std::move(backend), {.seats = seats, .lanes = lanes}));
    return {};
  }

  Result<ring::ActorHandle> launched(const std::string& name, const std::string& body, const std::string& members,
                                     bool stream, const ring::ActorOptions& options) {
    if (home_->grid != nullptr) {
      return home_->grid->launch(*home_->own_runtime, name, body, std::as_bytes(std::span(members)),
                                 stream ? ring::RingKind::bulk : ring::RingKind::fast, options);
    }
    const std::vector<std::string> known = ring::workload_body_names();
    const auto found = std::find(known.begin(), known.end(), body);
    if (found == known.end()) {
      return fail(ErrorKind::not_found, "no body is called '{}' (known: {})", body, fmt::join(known, ", "));
    }
    return home_->place->launch(name, static_cast<ring::WorkloadBody>(found - known.begin()),
                                stream ? ring::Traffic::stream : ring::Traffic::answers, options);
  }

  std::shared_ptr<Home> home_;
};

// index, name, uuid, memory total, used, free, load, load of memory, degrees, watts, limit.
using GpuRow = std::tuple<int, std::string, std::string, std::uint64_t, std::uint64_t, std::uint64_t, double, double,
                          double, double, double>;
std::vector<GpuRow> gpu_infos() {
  std::vector<GpuRow> rows;
  run_job(nb::none(), Stopping::by_token, [&](JobContext&) -> Status {
    CGL_TRY_ASSIGN(const Settings settings, Settings::from_environment());
    CGL_TRY_ASSIGN(const auto library, settings.library(Setting::nvml_library));
    const ring::GpuMonitor monitor(library);
    if (!monitor.available()) return {};
    for (const ring::GpuReading& one : monitor.read()) {
      if (!one.available()) continue;
      rows.emplace_back(one.index, one.name, one.uuid, one.memory_total_bytes, one.memory_used_bytes,
                        one.memory_total_bytes - one.memory_used_bytes, one.utilisation, one.memory_utilisation,
                        one.temperature_celsius, one.power_watts, one.power_limit_watts);
    }
    return {};
  });
  return rows;
}

}  // namespace

void bind_ring(nb::module_& module) {
  nb::class_<NativeActor>(module, "NativeActor")
      .def("state", &NativeActor::state)
      .def("failure", &NativeActor::failure)
      .def("operate", &NativeActor::operate, nb::arg("operation"))
      .def("request", &NativeActor::request, nb::arg("type"), nb::arg("payload"), nb::arg("timeout"))
      .def("ask", &NativeActor::ask, nb::arg("type"), nb::arg("payload"), nb::arg("timeout"), nb::arg("number"))
      .def("request_buffer", &NativeActor::request_buffer, nb::arg("values"), nb::arg("timeout"))
      .def("send", &NativeActor::send, nb::arg("type"), nb::arg("payload"), nb::arg("timeout"))
      .def("receive", &NativeActor::receive, nb::arg("timeout"))
      .def("exchange", &NativeActor::exchange, nb::arg("type"), nb::arg("messages"), nb::arg("answers"),
           nb::arg("timeout"))
      .def("terminate", &NativeActor::terminate, nb::arg("drain"), nb::arg("timeout"))
      .def("telemetry", &NativeActor::telemetry);
  nb::class_<NativeRuntime>(module, "NativeRuntime")
      .def(nb::init<const std::string&, const std::string&, const std::vector<std::tuple<std::string, std::string>>&,
                    std::uint32_t, std::uint32_t>(),
           nb::arg("device"), nb::arg("source"), nb::arg("bodies"), nb::arg("seats"), nb::arg("lanes"))
      .def("launch", &NativeRuntime::launch, nb::arg("name"), nb::arg("body"), nb::arg("members"), nb::arg("stream"),
           nb::arg("inbox"), nb::arg("outbox"))
      .def("names", &NativeRuntime::names)
      .def("pipeline", &NativeRuntime::pipeline, nb::arg("names"))
      .def("shutdown", &NativeRuntime::shutdown, nb::arg("timeout"))
      .def("answers_descriptor", &NativeRuntime::answers_descriptor)
      .def("drop", &NativeRuntime::drop, nb::arg("number"))
      .def("take_answers", &NativeRuntime::take_answers);
  module.def("ring_bodies", ring::workload_body_names);
  module.def(
      "message_type", [](const std::string& name) { return ring::fnv1a(name.c_str()); }, nb::arg("name"));
  module.def("gpu_infos", gpu_infos);
}

}  // namespace cingulum::python
