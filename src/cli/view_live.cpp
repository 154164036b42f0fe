#include "cli/view_live.hpp"

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
#include "cli/command_line.hpp"
#include "cli/track_defaults.hpp"
#include "cli/track_options.hpp"
#include "cli/track_run.hpp"
#include "cli/track_sidecar.hpp"
#include "dmri/phantom/phantom_description.hpp"
#include "dmri/score/score_streamline.hpp"
#include "ring/telemetry/telemetry_publisher.hpp"
#include "tract/run/finisher.hpp"
#include "tract/session/tracking_actors.hpp"
#include "view/field_glyphs.hpp"
#include "view/field_peaks.hpp"

namespace cingulum {

Verb track_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using view::WishedOption;

constexpr std::string_view all_getters[] = {"prob", "det", "ptt", "closest", "tensor", "boot"};

// For tests: CINGULUM_TEST_LOST_DEVICE=n lets the n-th request find that its device is gone; 0: none does.
std::uint64_t requests_until_injected_loss() {
  const char* const text = std::getenv("CINGULUM_TEST_LOST_DEVICE");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

// A field on a device, and who answers from it.
struct LiveField {
  TrackRun run;              // the field; its arguments are those of the request that is answered
  bool lost_device = false;  // it failed: the CPU answers
  std::shared_ptr<TrackingSession> session;
  std::unique_ptr<TrackingActors> actor;
};

class ActorLiveTracks final : public LiveTracks {
 public:
  ActorLiveTracks(LiveSource source, fs::path scratch, VerbContext& context)
      : source_(std::move(source)),
        scratch_(std::move(scratch)),
        context_(context),
        save_context_(
            context.verbs(), context.settings(), quiet(context.common()), [](std::string_view) {}, 80, context.log()) {
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
  [[nodiscard]] Result<view::SavedRun> save(const std::vector<WishedOption>& wish, const CancelToken& cancel) override;

 private:
  static CommonValues quiet(CommonValues common) {
    common.progress = ProgressStyle::silent;
    common.force = true;
    return common;
  }

  [[nodiscard]] Result<ThreadPool*> slice_pool() {
    if (!slice_pool_) {
      CGL_TRY_ASSIGN(slice_pool_, ThreadPool::create(1));
    }
    return slice_pool_.get();
  }
  [[nodiscard]] std::vector<std::string> words_for(const std::vector<WishedOption>& wish) const;
  [[nodiscard]] Result<std::vector<WishedOption>> accept(const std::vector<WishedOption>& wish) const;
  [[nodiscard]] Result<ParsedArguments> complete(const std::vector<WishedOption>& wish, Getter& getter) const;
  // `field` is where it was tracked, once that is known.
  [[nodiscard]] Status track_and_send(const view::LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                                      const view::LiveSend& send, LiveField*& field);
  [[nodiscard]] const Field& shown_field() const { return first_->run.prepared.data.prepared.field; }
  // The field that these arguments track; it is made where no request has needed it yet.
  [[nodiscard]] bool interpolation_is_chosen() const;  // for all getters, on the command line
  [[nodiscard]] Result<LiveField*> field_for(const ParsedArguments& arguments);
  [[nodiscard]] Result<std::unique_ptr<LiveField>> make_field(bool amplitudes);
  [[nodiscard]] Status open_session(LiveField& field, const std::string& actor_name);
  [[nodiscard]] Status offer_getters();
  [[nodiscard]] Status offer(std::string_view name, const ParsedArguments& arguments, Getter getter);
  void read_truth();
  void make_facts();
  void publish();

  LiveSource source_;
  const fs::path scratch_;
  VerbContext& context_;
  VerbContext save_context_;
  std::vector<WishedOption> own_options_;  // of which the command does not tell
  const Verb verb_ = track_verb();
  const std::vector<Argument> known_arguments_ = all_arguments(verb_);
  bool has_harmonics_ = false;       // that are interpolated as they are, or as amplitudes
  std::optional<FieldModel> model_;  // of a series
  LiveLimits limits_;
  std::string first_getter_;
  std::optional<PhantomTruth> truth_;
  std::optional<StreamlineJudge> judge_;  // of the truth
  std::unique_ptr<ring::Runtime> runtime_;
  // By what is interpolated: getters have defaults of their own for it (ptt is several times faster on amplitudes).
  std::map<bool, std::unique_ptr<LiveField>> fields_;
  LiveField* first_ = nullptr;
  std::unique_ptr<ring::TelemetryPublisher> publisher_;
  Json facts_;
  std::uint64_t requests_until_loss_ = requests_until_injected_loss();
  std::unique_ptr<ThreadPool> slice_pool_;  // of its own: the other one is tracking
  std::vector<WishedOption> saved_wish_;
  std::optional<view::SavedRun> saved_;
};

std::vector<std::string> ActorLiveTracks::words_for(const std::vector<WishedOption>& wish) const {
  std::vector<std::string> words = words_of_wish(source_, wish, false);
  for (const WishedOption& option : own_options_) {
    words.push_back(fmt::format("--{}={}", option.name, option.texts.front()));
  }
  return words;
}

Result<std::vector<WishedOption>> ActorLiveTracks::accept(const std::vector<WishedOption>& wish) const {
  return accept_wish(wish, source_, first_getter_, known_arguments_);
}

Result<ParsedArguments> ActorLiveTracks::complete(const std::vector<WishedOption>& wish, Getter& getter) const {
  const std::vector<std::string> words = words_for(wish);
  CGL_TRY_ASSIGN(ParsedArguments arguments, parse_command_line(verb_, words));
  CGL_TRY_ASSIGN(getter, getter_from_name(arguments.text("dg")));
  CGL_TRY(complete_arguments(verb_, getter, arguments));
  return arguments;
}

Status ActorLiveTracks::prepare() {
  const bool series = !source_.data.empty();
  const WishedOption* const wanted = find_option(source_.options, "dg");
  first_getter_ = wanted != nullptr                                   ? wanted->texts.front()
                  : find_option(source_.options, "tensor") != nullptr ? "tensor"
                  : find_option(source_.options, "peaks") != nullptr  ? "closest"
                                                                      : "prob";
  Getter getter = Getter::prob;
  CGL_TRY_ASSIGN(const ParsedArguments arguments, complete({{"dg", {first_getter_}, false}}, getter));
  has_harmonics_ =
      find_option(source_.options, "sh") != nullptr || (series && getter != Getter::boot && getter != Getter::tensor);
  if (has_harmonics_ && source_.one_field && !interpolation_is_chosen()) {
    source_.options.push_back({"interpolate", {arguments.text("interpolate")}, false});
  }
  if (series) {
    const double threshold = stop_threshold(arguments);
    limits_.lowest_threshold = threshold > 0 ? 0.5 * threshold : threshold;
    CGL_TRY_ASSIGN(model_, choose_model(arguments, getter));
  }
  CGL_TRY_ASSIGN(runtime_, ring::Runtime::create());
  CGL_TRY_ASSIGN(first_, field_for(arguments));
  CGL_TRY(offer_getters());
  read_truth();
  make_facts();
  publish();
  return {};
}

bool ActorLiveTracks::interpolation_is_chosen() const {
  constexpr std::string_view options[] = {"amplitudes", "interpolate", "full-sphere"};
  return std::any_of(std::begin(options), std::end(options),
                     [&](std::string_view name) { return find_option(source_.options, name) != nullptr; });
}

Result<LiveField*> ActorLiveTracks::field_for(const ParsedArguments& arguments) {
  bool amplitudes = false;
  if (has_harmonics_) {
    CGL_TRY_ASSIGN(amplitudes, interpolates_amplitudes(arguments));
  }
  std::unique_ptr<LiveField>& field = fields_[amplitudes];
  if (!field) {
    CGL_TRY_ASSIGN(field, make_field(amplitudes));
  } else if (!field->session) {
    CGL_TRY(open_session(*field, amplitudes ? "view-amplitudes-cpu" : "view-cpu"));
  }
  return field.get();
}

Result<std::unique_ptr<LiveField>> ActorLiveTracks::make_field(bool amplitudes) {
  auto field = std::make_unique<LiveField>();
  std::vector<WishedOption> wish = {{"dg", {first_getter_}, false}};
  const bool series = !source_.data.empty();
  if (series) {
    // Voxels that only a lower threshold reaches are not stored; ptt reads farthest.
    wish.push_back({"stop-threshold", {fmt::format("{}", *limits_.lowest_threshold)}, false});
    if (first_getter_ != "boot" && *model_ != FieldModel::dti) wish.front().texts = {"ptt"};
  }
  if (has_harmonics_ && !interpolation_is_chosen())
    wish.push_back({"interpolate", {amplitudes ? "amplitudes" : "harmonics"}, false});
  CGL_TRY_ASSIGN(const ParsedArguments command_line, parse_command_line(verb_, words_for(wish)));
  if (first_ != nullptr) field->run.wanted = first_->run.wanted;
  CGL_TRY(settle_track(command_line, context_, field->run));
  CGL_TRY(prepare_field(command_line, {}, context_, field->run));
  const std::int64_t reach = series ? field->run.plan.reach_voxels : std::numeric_limits<std::int64_t>::max();
  limits_.reach_voxels = first_ == nullptr ? reach : std::min(limits_.reach_voxels, reach);
  CGL_TRY(open_session(*field, first_ == nullptr ? "view" : amplitudes ? "view-amplitudes" : "view-harmonics"));
  return field;
}

Status ActorLiveTracks::open_session(LiveField& live, const std::string& actor_name) {
  TrackRun& run = live.run;
  CGL_TRY_ASSIGN(ThreadPool* const pool, context_.pool());
  CGL_TRY_ASSIGN(DeviceRegistry* const registry, run.wanted->registry());
  if (live.lost_device) CGL_TRY(registry->open_rest());  // the CPU may not have been wanted so far
  CGL_TRY_ASSIGN(const std::vector<Device*> devices,
                 choose_devices(*registry, live.lost_device ? "cpu" : run.wanted->names(), 1));
  run.options.stop_rule = stop_rule(run.arguments, run.prepared.data);
  CGL_TRY_ASSIGN(run.plan, make_tracking_plan(run.options, run.source.geometry));
  // The field stays where it is, in the run, which outlives the session.
  const std::shared_ptr<const Field> field(std::shared_ptr<void>(), &run.prepared.data.prepared.field);
  TrackingSessionOptions options;
  if (limits_.lowest_threshold) options.lowest_stop_threshold = static_cast<float>(*limits_.lowest_threshold);
  auto opened = TrackingSession::open(*devices.front(), *pool, field, run.plan, options);
  if (!opened && run.wanted->names() == "auto" && devices.front()->description().backend != Backend::cpu) {
    log_warning("--device auto: {} not used: {}", devices.front()->id(), opened.error());
    CGL_TRY_ASSIGN(Device* const cpu, registry->select_one("cpu"));
    opened = TrackingSession::open(*cpu, *pool, field, run.plan, options);
  }
  CGL_TRY_ASSIGN(live.session, std::move(opened));
  CGL_TRY_ASSIGN(live.actor, start_tracking_actor(*runtime_, actor_name, live.session));
  return {};
}

Status ActorLiveTracks::offer_getters() {
  const bool only_first = find_option(source_.options, "peaks") != nullptr;
  for (const std::string_view name : all_getters) {
    if (only_first && name != first_getter_) continue;
    const auto try_it = [&]() -> Status {
      const ImageGeometry& geometry = first_->run.source.geometry;
      const numerics::Vec3d middle = geometry.voxel_to_world.apply({static_cast<double>(geometry.size[0] / 2),
                                                                    static_cast<double>(geometry.size[1] / 2),
                                                                    static_cast<double>(geometry.size[2] / 2)});
      const std::vector<WishedOption> wish = {
          {"dg", {std::string(name)}, false},
          {"nseeds", {"1"}, false},
          {"seed-sphere", {fmt::format("{},{},{},1", middle.x, middle.y, middle.z)}, false}};
      Getter getter = Getter::prob;
      CGL_TRY_ASSIGN(const ParsedArguments arguments, complete(wish, getter));
      return offer(name, arguments, getter);
    };
    const Status offered = try_it();
    if (offered) {
      limits_.getters.emplace_back(name);
    } else if (name == first_getter_) {
      return offered;
    } else {
      log_debug("--dg {} is not offered: {}", name, offered.error());
    }
  }
  return {};
}

// Whether a getter can track what is here: tried on one seed, in the middle of the image. One whose field is not made
// yet is believed: it differs in what is interpolated alone.
Status ActorLiveTracks::offer(std::string_view name, const ParsedArguments& arguments, Getter getter) {
  if (model_) {
    CGL_TRY_ASSIGN(const FieldModel fitted, choose_model(arguments, getter));
    if (fitted != *model_ || (name == "boot") != (first_getter_ == "boot")) {
      return fail(ErrorKind::unavailable, "it tracks another model");
    }
  }
  if (has_harmonics_) {
    if (getter == Getter::boot || getter == Getter::tensor)
      return fail(ErrorKind::unavailable, "it tracks no harmonics");
    CGL_TRY_ASSIGN(const bool amplitudes, interpolates_amplitudes(arguments));
    if (!fields_.contains(amplitudes)) return {};
  }
  CGL_TRY_ASSIGN(LiveField* const field, field_for(arguments));
  TrackRun& run = field->run;
  run.arguments = arguments;
  run.getter = getter;
  CGL_TRY(plan_seeds(context_, run));
  CGL_TRY(limits_.check(run.plan));
  CGL_TRY(field->session->ask({.plan = run.plan, .seeds = std::move(run.seeds)}));
  return {};
}

// A phantom knows where its fibres run; what cannot be read is said, and there is no score.
void ActorLiveTracks::read_truth() {
  if (source_.truth.empty()) return;
  auto read = read_phantom(source_.truth);
  if (!read) return log_warning("no scores: {}", read.error());
  truth_ = std::move(*read);
  const double edge = truth_->geometry.smallest_edge_mm();
  judge_.emplace(truth_->bundles, edge, 0.5 * edge);
}

void ActorLiveTracks::make_facts() {
  const ImageGeometry& geometry = first_->run.source.geometry;
  const Field& field = shown_field();
  Json options = Json::object();
  for (const Argument& argument : all_arguments(verb_)) {
    if (std::find(live_options().begin(), live_options().end(), argument.name) == live_options().end()) continue;
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
    Getter getter = Getter::prob;
    const auto completed = complete({{"dg", {name}, false}}, getter);
    if (!completed) continue;
    const Json all = options_for_sidecar(verb_, *completed)["options"];
    Json own = Json::object();
    for (const std::string_view option : live_options()) {
      if (const auto found = all.find(option); found != all.end()) own[std::string(option)] = *found;
    }
    own["stop-threshold"] = fmt::format("{}", stop_threshold(*completed));
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

// For `cingulum ring top`. A monitor must not be the reason why something does not run.
void ActorLiveTracks::publish() {
  ring::PublisherOptions options;
  options.program = "cingulum view";
  const auto path = ring::process_page_path(context_.settings().runtime_dir());
  if (!path) return log_debug("no page for `cingulum ring top`: {}", path.error());
  options.path = *path;
  auto publisher = ring::TelemetryPublisher::start([this] { return runtime_->telemetry(); }, std::move(options));
  if (!publisher) return log_debug("no page for `cingulum ring top`: {}", publisher.error());
  publisher_ = std::move(*publisher);
}

Status ActorLiveTracks::answer(const view::LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                               const view::LiveSend& send) {
  LiveField* field = nullptr;
  Status outcome = track_and_send(request, page, cancel, send, field);
  if (outcome || field == nullptr || field->lost_device || outcome.error().kind() != ErrorKind::device) return outcome;
  // What failed once may never work again in this process.
  log_warning("{}", outcome.error());
  field->actor.reset();
  field->session.reset();
  field->lost_device = true;
  return fail(ErrorKind::device, "{}; from now on the CPU answers, with the same streamlines",
              outcome.error().message());
}

Status ActorLiveTracks::track_and_send(const view::LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                                       const view::LiveSend& send, LiveField*& field) {
  const auto begin = std::chrono::steady_clock::now();
  const auto milliseconds = [&] { return 1e3 * seconds_since(begin); };
  std::vector<WishedOption> asked = request.wish;
  const bool wants_score = take_score(asked);
  CGL_TRY_ASSIGN(const std::vector<WishedOption> wish, accept(asked));
  Getter getter = Getter::prob;
  CGL_TRY_ASSIGN(ParsedArguments arguments, complete(wish, getter));
  CGL_TRY(limits_.check(arguments));
  CGL_TRY_ASSIGN(field, field_for(arguments));
  TrackRun& run = field->run;
  run.getter = getter;
  run.arguments = std::move(arguments);
  CGL_TRY(plan_seeds(context_, run));
  CGL_TRY(limits_.check(run.plan));
  std::vector<numerics::Vec3> seeds(static_cast<std::size_t>(run.seeds->count()));
  run.seeds->fill(0, seeds);
  run.run_options.save_seeds = true;
  TrackingStatistics statistics;
  Finisher finisher(run.prepared.data.geometry, run.run_options, false, statistics);
  const double plan_ms = milliseconds();
  if (requests_until_loss_ > 0 && --requests_until_loss_ == 0) {
    return fail(ErrorKind::device, "device {}: it was lost (failure injected by a test)", field->session->name());
  }
  CGL_TRY_ASSIGN(const auto stream, field->actor->ask({.plan = run.plan, .seeds = seeds, .channel = page}));
  std::optional<double> first_ms;
  double copies_ms = 0;
  VerdictCounts verdicts{};
  std::optional<JudgeHistograms> histograms;
  if (wants_score && judge_) histograms.emplace();
  while (true) {
    CGL_TRY(cancel.check());
    // The token is looked at while the actor is at work.
    auto batch = stream->next(std::chrono::milliseconds(20));
    if (!batch && batch.error().kind() == ErrorKind::timed_out) continue;
    if (!batch) return tl::make_unexpected(std::move(batch.error()));
    if (!batch->has_value()) break;
    const double before = milliseconds();
    statistics.seeds_outside += (*batch)->seeds_outside;
    CGL_TRY(finisher.finish(**batch));
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
  Json end = answer_end(seeds.size(), statistics,
                        {.first_ms = first_ms.value_or(total_ms),
                         .plan_ms = plan_ms,
                         .tracking_ms = total_ms - plan_ms - copies_ms,
                         .copies_ms = copies_ms,
                         .total_ms = total_ms},
                        command_of_wish(source_, wish));
  end["score"] = score_json(verdicts);
  return send(view::make_message(view::MessageKind::end, request.number,
                                 end.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

Result<ExportedLive> ActorLiveTracks::exported() const {
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
    Getter getter = Getter::prob;
    CGL_TRY_ASSIGN(const ParsedArguments arguments, complete({{"dg", {name}, false}}, getter));
    Json options = options_for_sidecar(verb_, arguments);
    for (const Argument& argument : known_arguments_) {
      // That one was given is what counts there, and nothing else of it is told.
      if (argument.type == ArgumentType::file_in && options["options"].contains(argument.name)) {
        options["options"][argument.name] = "file";
      }
    }
    const bool nearest = stop_rule(arguments, first_->run.prepared.data) == StopRule::nearest;
    options["options"]["stop-rule"] = nearest ? "nearest" : "trilinear";
    live.facts.arguments[name] = std::move(options);
  }
  return live;
}

Result<view::SavedRun> ActorLiveTracks::save(const std::vector<WishedOption>& asked, const CancelToken& cancel) {
  std::vector<WishedOption> to_track = asked;
  take_score(to_track);
  CGL_TRY_ASSIGN(std::vector<WishedOption> wish, accept(to_track));
  if (saved_ && saved_wish_ == wish) return *saved_;
  const auto begin = std::chrono::steady_clock::now();
  saved_.reset();
  view::SavedRun saved;
  saved.command = command_of_wish(source_, wish);
  const fs::path folder = scratch_ / "saved";
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) return fail(ErrorKind::io, "making the folder of a saved run: {}", error.message());
  saved.tractogram = folder / "tracks.trx";
  saved.sidecar = folder / "tracks.trx.json";
  std::vector<std::string> words = words_for(wish);
  words.insert(words.end(), {"--out", saved.tractogram.string(), "--force"});
  CGL_TRY_ASSIGN(const ParsedArguments command_line, parse_command_line(verb_, words));
  CGL_TRY(limits_.check(command_line));
  save_context_.set_run(cancel, nullptr);
  TrackRun run;
  CGL_TRY(settle_track(command_line, save_context_, run));
  CGL_TRY_ASSIGN(const TrackOutput output, check_track_output(run.arguments, save_context_));
  CGL_TRY(prepare_field(command_line, output.path, save_context_, run));
  CGL_TRY(prepare_seeds(save_context_, run));
  CGL_TRY(track_to_file(run, output, begin, save_context_));
  saved_wish_ = std::move(wish);
  saved_ = saved;
  return saved;
}

}  // namespace

Result<std::unique_ptr<LiveTracks>> LiveTracks::open(LiveSource source, fs::path scratch, VerbContext& context) {
  auto tracks = std::make_unique<ActorLiveTracks>(std::move(source), std::move(scratch), context);
  CGL_TRY(tracks->prepare());
  return tracks;
}

}  // namespace cingulum
