#include "view/live_tracks.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>

#include "base/elapsed.hpp"
#include "base/log.hpp"
#include "base/quantity.hpp"
#include "dmri/phantom/phantom_description.hpp"
#include "dmri/score/score_streamline.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_options.hpp"
#include "runs/track/track_run.hpp"
#include "tract/run/finisher.hpp"
#include "tract/session/tracking_session.hpp"
#include "view/field_glyphs.hpp"
#include "view/field_peaks.hpp"

namespace cingulum {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A page has a control for it: what one request may say, but for the sphere, which it points at.
bool is_offered(const TrackField& field) {
  return may_change_per_answer(field) && field.argument.name != "seed-sphere";
}

constexpr std::string_view all_getters[] = {"prob", "det", "ptt", "closest", "tensor", "boot"};

// For tests: CINGULUM_TEST_LOST_DEVICE=n lets the n-th request find that its device is gone; 0: none does.
std::uint64_t requests_until_injected_loss() {
  const char* const text = std::getenv("CINGULUM_TEST_LOST_DEVICE");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

// A field on a device, and the session that answers from it.
struct LiveField {
  TrackRun run;              // the field; its request is the one that is answered
  bool lost_device = false;  // it failed: the CPU answers
  std::shared_ptr<TrackingSession> session;
};

class SessionLiveTracks final : public LiveTracks {
 public:
  SessionLiveTracks(LiveSource source, fs::path scratch, RunMachine& machine)
      : source_(std::move(source)),
        scratch_(std::move(scratch)),
        machine_(machine),
        save_machine_(machine.settings(), {.threads = machine.threads(), .force = true}, machine.log()) {
    if (find_option(source_.options, "cache-dir") == nullptr) {
      own_options_.push_back({"cache-dir", {(scratch_ / "fits").string()}, false});
    }
  }

  [[nodiscard]] Status prepare();
  [[nodiscard]] Json facts() const override { return facts_; }
  [[nodiscard]] Status answer(const view::LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                              const view::LiveSend& send) override;
  [[nodiscard]] Result<std::vector<std::byte>> glyphs(int axis, double mm) override {
    CGL_TRY_ASSIGN(ThreadPool* const pool, slice_pool());
    CGL_TRY_ASSIGN(const FieldGlyphs found, glyphs_of_slice(shown_field(), axis, mm, *pool));
    return glyph_bytes(found);
  }
  [[nodiscard]] Result<std::vector<std::byte>> peaks(int axis, double mm) override {
    CGL_TRY_ASSIGN(ThreadPool* const pool, slice_pool());
    return peaks_of_slice(shown_field(), axis, mm, *pool);
  }
  [[nodiscard]] Result<ExportedLive> exported() const override;
  [[nodiscard]] Result<view::SavedRun> save(const std::vector<ArgumentText>& asked, const CancelToken& cancel) override;

 private:
  [[nodiscard]] Result<ThreadPool*> slice_pool() {
    if (!slice_pool_) {
      CGL_TRY_ASSIGN(slice_pool_, ThreadPool::create(1));
    }
    return slice_pool_.get();
  }
  // The request of `track` for what a page asks for, with what was said on the viewer's command line; not completed.
  [[nodiscard]] Result<TrackRequest> request_for(const std::vector<ArgumentText>& asked) const;
  [[nodiscard]] Result<TrackRequest> completed(const std::vector<ArgumentText>& asked) const;
  // `field` is where it was tracked, once that is known.
  [[nodiscard]] Status track_and_send(const view::LiveRequest& request, const CancelToken& cancel,
                                      const view::LiveSend& send, LiveField*& field);
  [[nodiscard]] const Field& shown_field() const { return first_->run.prepared.data.prepared.field; }
  [[nodiscard]] bool interpolation_is_chosen() const;  // for all getters, on the command line
  // The field that a completed request tracks; it is made where none has needed it yet.
  [[nodiscard]] Result<LiveField*> field_for(const TrackRequest& request);
  [[nodiscard]] Result<std::unique_ptr<LiveField>> make_field(bool amplitudes);
  [[nodiscard]] Status open_session(LiveField& field);
  [[nodiscard]] Status offer_getters();
  [[nodiscard]] Status offer(std::string_view name, TrackRequest request);
  void read_truth();
  void make_facts();

  LiveSource source_;
  const fs::path scratch_;
  RunMachine& machine_;
  RunMachine save_machine_;
  std::vector<ArgumentText> own_options_;  // of which the command does not tell
  bool has_harmonics_ = false;             // that are interpolated as they are, or as amplitudes
  std::optional<FieldModel> model_;        // of a series
  LiveLimits limits_;
  std::string first_getter_;
  std::optional<PhantomTruth> truth_;
  std::optional<StreamlineJudge> judge_;  // of the truth
  // By what is interpolated: getters have defaults of their own for it (ptt is several times faster on amplitudes).
  std::map<bool, std::unique_ptr<LiveField>> fields_;
  LiveField* first_ = nullptr;
  Json facts_;
  std::uint64_t requests_until_loss_ = requests_until_injected_loss();
  std::unique_ptr<ThreadPool> slice_pool_;  // of its own: the other one is tracking
  std::vector<ArgumentText> saved_request_;
  std::optional<view::SavedRun> saved_;
};

Result<TrackRequest> SessionLiveTracks::request_for(const std::vector<ArgumentText>& asked) const {
  std::vector<ArgumentText> all = joined_request(source_, asked);
  all.insert(all.end(), own_options_.begin(), own_options_.end());
  TrackRequest request;
  CGL_TRY(set_given(track_fields(), all, request));
  return request;
}

Result<TrackRequest> SessionLiveTracks::completed(const std::vector<ArgumentText>& asked) const {
  CGL_TRY_ASSIGN(TrackRequest request, request_for(asked));
  CGL_TRY(complete_request(request));
  return request;
}

Status SessionLiveTracks::prepare() {
  const bool series = !source_.data.empty();
  const ArgumentText* const wanted = find_option(source_.options, "dg");
  first_getter_ = wanted != nullptr                                   ? wanted->texts.front()
                  : find_option(source_.options, "tensor") != nullptr ? "tensor"
                  : find_option(source_.options, "peaks") != nullptr  ? "closest"
                                                                      : "prob";
  CGL_TRY_ASSIGN(const TrackRequest request, completed({{"dg", {first_getter_}, false}}));
  CGL_TRY_ASSIGN(const Getter getter, getter_from_name(first_getter_));
  has_harmonics_ =
      find_option(source_.options, "sh") != nullptr || (series && getter != Getter::boot && getter != Getter::tensor);
  if (has_harmonics_ && source_.one_field && !interpolation_is_chosen()) {
    source_.options.push_back({"interpolate", {request.interpolate.value()}, false});
  }
  if (series) {
    const double threshold = stop_threshold(request);
    limits_.lowest_threshold = threshold > 0 ? 0.5 * threshold : threshold;
    CGL_TRY_ASSIGN(model_, choose_model(request, getter));
  }
  CGL_TRY_ASSIGN(first_, field_for(request));
  CGL_TRY(offer_getters());
  read_truth();
  make_facts();
  return {};
}

bool SessionLiveTracks::interpolation_is_chosen() const {
  constexpr std::string_view options[] = {"amplitudes", "interpolate", "full-sphere"};
  return std::any_of(std::begin(options), std::end(options),
                     [&](std::string_view name) { return find_option(source_.options, name) != nullptr; });
}

Result<LiveField*> SessionLiveTracks::field_for(const TrackRequest& request) {
  bool amplitudes = false;
  if (has_harmonics_) {
    CGL_TRY_ASSIGN(amplitudes, interpolates_amplitudes(request));
  }
  std::unique_ptr<LiveField>& field = fields_[amplitudes];
  if (!field) {
    CGL_TRY_ASSIGN(field, make_field(amplitudes));
  } else if (!field->session) {
    CGL_TRY(open_session(*field));
  }
  return field.get();
}

Result<std::unique_ptr<LiveField>> SessionLiveTracks::make_field(bool amplitudes) {
  auto field = std::make_unique<LiveField>();
  std::vector<ArgumentText> asked = {{"dg", {first_getter_}, false}};
  const bool series = !source_.data.empty();
  if (series) {
    // Voxels that only a lower threshold reaches are not stored; ptt reads farthest.
    asked.push_back({"stop-threshold", {fmt::format("{}", *limits_.lowest_threshold)}, false});
    if (first_getter_ != "boot" && *model_ != FieldModel::dti) asked.front().texts = {"ptt"};
  }
  if (has_harmonics_ && !interpolation_is_chosen())
    asked.push_back({"interpolate", {amplitudes ? "amplitudes" : "harmonics"}, false});
  CGL_TRY_ASSIGN(TrackRequest request, request_for(asked));
  if (first_ != nullptr) field->run.wanted = first_->run.wanted;
  CGL_TRY(settle_track(std::move(request), machine_, field->run));
  CGL_TRY(prepare_field({}, machine_, field->run));
  const std::int64_t reach = field->run.limits.reach_voxels.value_or(std::numeric_limits<std::int64_t>::max());
  limits_.reach_voxels = first_ == nullptr ? reach : std::min(limits_.reach_voxels, reach);
  CGL_TRY(open_session(*field));
  return field;
}

Status SessionLiveTracks::open_session(LiveField& live) {
  TrackRun& run = live.run;
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine_.pool());
  CGL_TRY_ASSIGN(DeviceRegistry* const registry, run.wanted->registry());
  if (live.lost_device) CGL_TRY(registry->open_rest());  // the CPU may not have been wanted so far
  CGL_TRY_ASSIGN(const std::vector<Device*> devices,
                 choose_devices(*registry, live.lost_device ? "cpu" : run.wanted->names(), 1));
  // The field stays where it is, in the run, which outlives the session.
  const std::shared_ptr<const Field> field(std::shared_ptr<void>(), &run.prepared.data.prepared.field);
  TrackingSessionOptions options;
  if (limits_.lowest_threshold) options.lowest_stop_threshold = static_cast<float>(*limits_.lowest_threshold);
  auto opened = TrackingSession::open(*devices.front(), *pool, field, run.plan, options);
  if (!opened && run.wanted->is_auto() && devices.front()->description().backend != Backend::cpu) {
    log_warning("{} auto: {} not used: {}", argument_name("device"), devices.front()->id(), opened.error());
    CGL_TRY_ASSIGN(Device* const cpu, registry->select_one("cpu"));
    opened = TrackingSession::open(*cpu, *pool, field, run.plan, options);
  }
  CGL_TRY_ASSIGN(live.session, std::move(opened));
  return {};
}

Status SessionLiveTracks::offer_getters() {
  const bool only_first = find_option(source_.options, "peaks") != nullptr;
  for (const std::string_view name : all_getters) {
    if (only_first && name != first_getter_) continue;
    const auto try_it = [&]() -> Status {
      const ImageGeometry& geometry = first_->run.source.geometry;
      const numerics::Vec3d middle = geometry.voxel_to_world.apply({static_cast<double>(geometry.size[0] / 2),
                                                                    static_cast<double>(geometry.size[1] / 2),
                                                                    static_cast<double>(geometry.size[2] / 2)});
      const std::vector<ArgumentText> asked = {
          {"dg", {std::string(name)}, false},
          {"nseeds", {"1"}, false},
          {"seed-sphere", {fmt::format("{},{},{},1", middle.x, middle.y, middle.z)}, false}};
      CGL_TRY_ASSIGN(TrackRequest request, completed(asked));
      return offer(name, std::move(request));
    };
    const Status offered = try_it();
    if (offered) {
      limits_.getters.emplace_back(name);
    } else if (name == first_getter_) {
      return offered;
    } else {
      log_debug("{} {} is not offered: {}", argument_name("dg"), name, offered.error());
    }
  }
  return {};
}

// Whether a getter can track what is here: tried on one seed, in the middle of the image. One whose field is not made
// yet is believed: it differs in what is interpolated alone.
Status SessionLiveTracks::offer(std::string_view name, TrackRequest request) {
  CGL_TRY_ASSIGN(const Getter getter, getter_from_name(request.dg.value()));
  if (model_) {
    CGL_TRY_ASSIGN(const FieldModel fitted, choose_model(request, getter));
    if (fitted != *model_ || (name == "boot") != (first_getter_ == "boot")) {
      return fail(ErrorKind::unavailable, "it tracks another model");
    }
  }
  if (has_harmonics_) {
    if (getter == Getter::boot || getter == Getter::tensor)
      return fail(ErrorKind::unavailable, "it tracks no harmonics");
    CGL_TRY_ASSIGN(const bool amplitudes, interpolates_amplitudes(request));
    if (!fields_.contains(amplitudes)) return {};
  }
  CGL_TRY_ASSIGN(LiveField* const field, field_for(request));
  TrackRun& run = field->run;
  CGL_TRY(change_request(std::move(request), run));
  CGL_TRY(plan_seeds(machine_, run));
  CGL_TRY(limits_.check(run.plan));
  CGL_TRY(field->session->ask({.plan = run.plan, .seeds = std::move(run.seeds)}));
  return {};
}

// A phantom knows where its fibres run; what cannot be read is said, and there is no score.
void SessionLiveTracks::read_truth() {
  if (source_.truth.empty()) return;
  auto read = read_phantom(source_.truth);
  if (!read) return log_warning("no scores: {}", read.error());
  truth_ = std::move(*read);
  const double edge = truth_->geometry.smallest_edge_mm();
  judge_.emplace(truth_->bundles, edge, 0.5 * edge);
}

void SessionLiveTracks::make_facts() {
  const ImageGeometry& geometry = first_->run.source.geometry;
  const Field& field = shown_field();
  Json options = Json::object();
  for (const TrackField& field_of_request : track_fields()) {
    if (!is_offered(field_of_request)) continue;
    const Argument& argument = field_of_request.argument;
    constexpr std::array<std::string_view, 12> type_names = {"text",  "file",  "file", "integer", "real", "length",
                                                             "angle", "bytes", "key",  "choice",  "flag", "devices"};
    Json facts = {{"type", type_names[static_cast<std::size_t>(argument.type)]}, {"help", argument.help}};
    if (!argument.unit.empty()) facts["unit"] = argument.unit;
    if (argument.range.minimum) facts["minimum"] = *argument.range.minimum;
    if (argument.range.maximum) facts["maximum"] = *argument.range.maximum;
    if (!argument.choices.empty()) facts["choices"] = argument.choices;
    options[argument.name] = std::move(facts);
  }
  Json defaults = Json::object();
  for (const std::string& name : limits_.getters) {
    const auto request = completed({{"dg", {name}, false}});
    if (!request) continue;
    const Json all = arguments_for_sidecar(*request)["options"];
    Json own = Json::object();
    for (const TrackField& field_of_request : track_fields()) {
      const auto found = all.find(field_of_request.argument.name);
      if (is_offered(field_of_request) && found != all.end()) own[field_of_request.argument.name] = *found;
    }
    own["stop-threshold"] = fmt::format("{}", stop_threshold(*request));
    own["nseeds"] = fmt::format("{}", default_live_seeds);
    defaults[name] = std::move(own);
  }
  Json affine = Json::array();
  for (const double number : geometry.voxel_to_world.rows) affine.push_back(number);
  for (const double number : {0.0, 0.0, 0.0, 1.0}) affine.push_back(number);
  Json lowest;
  if (limits_.lowest_threshold) lowest = *limits_.lowest_threshold;
  facts_ = {{"field", source_.name},
            {"getters", limits_.getters},
            {"getter", first_getter_},
            {"lowest_stop_threshold", lowest},
            {"options", std::move(options)},
            {"defaults", std::move(defaults)},
            {"affine", std::move(affine)},
            {"glyphs", field.kind == FieldKind::harmonics || field.kind == FieldKind::amplitudes},
            {"peaks", field.kind != FieldKind::bootstrap},
            {"shape", {geometry.size[0], geometry.size[1], geometry.size[2]}},
            {"device", first_->session->name()},
            {"most_seeds", most_live_seeds},
            {"truth", judge_.has_value()}};
}

Status SessionLiveTracks::answer(const view::LiveRequest& request, std::uint32_t /*page*/, const CancelToken& cancel,
                                 const view::LiveSend& send) {
  LiveField* field = nullptr;
  Status outcome = track_and_send(request, cancel, send, field);
  if (outcome || field == nullptr || field->lost_device || outcome.error().kind() != ErrorKind::device) return outcome;
  // What failed once may never work again in this process.
  log_warning("{}", outcome.error());
  field->session.reset();
  field->lost_device = true;
  return fail(ErrorKind::device, "{}; from now on the CPU answers, with the same streamlines",
              outcome.error().message());
}

Status SessionLiveTracks::track_and_send(const view::LiveRequest& request, const CancelToken& cancel,
                                         const view::LiveSend& send, LiveField*& field) {
  const auto begin = std::chrono::steady_clock::now();
  const auto milliseconds = [&] { return 1e3 * seconds_since(begin); };
  std::vector<ArgumentText> asked = request.arguments;
  const bool wants_score = take_score(asked);
  CGL_TRY_ASSIGN(asked, accept_page_request(asked, source_, first_getter_));
  CGL_TRY_ASSIGN(TrackRequest to_track, completed(asked));
  CGL_TRY(limits_.check(to_track));
  CGL_TRY_ASSIGN(field, field_for(to_track));
  TrackRun& run = field->run;
  CGL_TRY(change_request(std::move(to_track), run));
  CGL_TRY(plan_seeds(machine_, run));
  CGL_TRY(limits_.check(run.plan));
  const std::uint64_t seeds = run.seeds->count();
  run.run_options.save_seeds = true;
  TrackingStatistics statistics;
  Finisher finisher(run.prepared.data.geometry, run.run_options, false, statistics);
  const double plan_ms = milliseconds();
  if (requests_until_loss_ > 0 && --requests_until_loss_ == 0) {
    return fail(ErrorKind::device, "device {}: it was lost (failure injected by a test)", field->session->name());
  }
  CGL_TRY_ASSIGN(const auto answer,
                 field->session->ask({.plan = run.plan, .seeds = std::move(run.seeds), .cancel = cancel}));
  std::optional<double> first_ms;
  double copies_ms = 0;
  VerdictCounts verdicts{};
  std::optional<JudgeHistograms> histograms;
  if (wants_score && judge_) histograms.emplace();
  while (true) {
    CGL_TRY_ASSIGN(const StreamlineBatch* const batch, answer->next());
    if (batch == nullptr) break;
    const double before = milliseconds();
    statistics.seeds_outside += batch->seeds_outside;
    CGL_TRY(finisher.finish(*batch));
    const TractogramBatch& kept = finisher.kept();
    if (kept.streamline_count() == 0) continue;
    CGL_TRY_ASSIGN(auto message, view::make_batch_message(request.number, {.offsets = kept.offsets,
                                                                           .positions = kept.positions,
                                                                           .seed_index = kept.streamline_data[0],
                                                                           .end_reasons = kept.streamline_data[2]}));
    CGL_TRY(send(std::move(message)));
    if (!first_ms) first_ms = milliseconds();
    for (std::size_t i = 0; histograms && i < kept.streamline_count(); ++i) {
      ++verdicts[static_cast<std::size_t>(judge_->judge(kept.streamline(i), *histograms).verdict)];
    }
    copies_ms += milliseconds() - before;
  }
  const double total_ms = milliseconds();
  Json end = answer_end(seeds, statistics,
                        {.first_ms = first_ms.value_or(total_ms),
                         .plan_ms = plan_ms,
                         .tracking_ms = total_ms - plan_ms - copies_ms,
                         .copies_ms = copies_ms,
                         .total_ms = total_ms},
                        command_of_request(source_, asked));
  end["score"] = score_json(verdicts);
  return send(view::make_message(view::MessageKind::end, request.number,
                                 end.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

Result<ExportedLive> SessionLiveTracks::exported() const {
  ExportedLive live;
  live.field = &first_->run.prepared.data.prepared.field;
  live.facts.source = shown_elsewhere(source_);
  live.facts.first_getter = first_getter_;
  live.facts.limits = limits_;
  live.facts.truth = truth_;
  live.facts.model = first_->run.prepared.data.prepared.facts;
  live.facts.min_signal = first_->run.prepared.data.prepared.min_signal;
  live.facts.arguments = Json::object();
  for (const std::string& name : limits_.getters) {
    CGL_TRY_ASSIGN(const TrackRequest request, completed({{"dg", {name}, false}}));
    Json options = arguments_for_sidecar(request);
    for (const TrackField& field_of_request : track_fields()) {
      const Argument& argument = field_of_request.argument;
      // That one was given is what counts there, and nothing else of it is told.
      if (argument.type == ArgumentType::file_in && options["options"].contains(argument.name)) {
        options["options"][argument.name] = "file";
      }
    }
    const bool nearest = stop_rule(request, first_->run.prepared.data) == StopRule::nearest;
    options["options"]["stop-rule"] = nearest ? "nearest" : "trilinear";
    live.facts.arguments[name] = std::move(options);
  }
  return live;
}

Result<view::SavedRun> SessionLiveTracks::save(const std::vector<ArgumentText>& asked, const CancelToken& cancel) {
  std::vector<ArgumentText> to_track = asked;
  take_score(to_track);
  CGL_TRY_ASSIGN(to_track, accept_page_request(to_track, source_, first_getter_));
  if (saved_ && saved_request_ == to_track) return *saved_;
  saved_.reset();
  view::SavedRun saved;
  saved.command = command_of_request(source_, to_track);
  const fs::path folder = scratch_ / "saved";
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) return fail(ErrorKind::io, "making the folder of a saved run: {}", error.message());
  saved.tractogram = folder / "tracks.trx";
  saved.sidecar = folder / "tracks.trx.json";
  CGL_TRY_ASSIGN(TrackRequest request, request_for(to_track));
  request.out = saved.tractogram.string();
  CGL_TRY(fill_in_defaults(track_fields(), request));
  CGL_TRY(limits_.check(request));
  save_machine_.set_run(cancel, nullptr);
  CGL_TRY(track(std::move(request), save_machine_));
  saved_request_ = std::move(to_track);
  saved_ = saved;
  return saved;
}

}  // namespace

Result<std::unique_ptr<LiveTracks>> LiveTracks::open(LiveSource source, fs::path scratch, RunMachine& machine) {
  auto tracks = std::make_unique<SessionLiveTracks>(std::move(source), std::move(scratch), machine);
  CGL_TRY(tracks->prepare());
  return tracks;
}

}  // namespace cingulum
