#include "cli/view_live.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <span>

#include "base/elapsed.hpp"
#include "base/log.hpp"
#include "base/quantity.hpp"
#include "cli/command_line.hpp"
#include "cli/track_defaults.hpp"
#include "cli/track_options.hpp"
#include "cli/track_run.hpp"
#include "cli/track_sidecar.hpp"
#include "ring/telemetry/telemetry_publisher.hpp"
#include "streamlines/sphere_text.hpp"
#include "tract/run/finisher.hpp"
#include "tract/session/tracking_actors.hpp"
#include "view/field_glyphs.hpp"

namespace cingulum {

Verb track_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using view::WishedOption;

constexpr std::int64_t most_live_seeds = 100'000;
constexpr std::int64_t default_live_seeds = 200;

// What a request may say besides the sphere: nothing on which the field depends, and nothing that names a file.
constexpr std::string_view live_options[] = {"dg",
                                             "nseeds",
                                             "seed",
                                             "seed-seed",
                                             "step-size",
                                             "max-angle",
                                             "fa-threshold",
                                             "stop-threshold",
                                             "relative-peak-threshold",
                                             "min-separation-angle",
                                             "pmf-threshold",
                                             "pmf-threshold-absolute",
                                             "max-directions",
                                             "start",
                                             "one-sided",
                                             "second-half",
                                             "angular-weight",
                                             "no-refine",
                                             "rk4",
                                             "boot-attempts",
                                             "boot-retry",
                                             "boot-seed",
                                             "ptt-probe-length",
                                             "ptt-probe-radius",
                                             "ptt-probe-quality",
                                             "ptt-probe-count",
                                             "ptt-exponent",
                                             "ptt-min-radius",
                                             "ptt-weak",
                                             "ptt-tries",
                                             "ptt-bound-interval",
                                             "ptt-substeps",
                                             "min-length",
                                             "max-length",
                                             "min-points",
                                             "max-points",
                                             "include",
                                             "include-ordered",
                                             "exclude",
                                             "stop"};
// Which peaks of a file there are is settled when it is read.
constexpr std::string_view settled_by_peaks[] = {"relative-peak-threshold", "min-separation-angle",
                                                 "pmf-threshold-absolute"};
constexpr std::string_view all_getters[] = {"prob", "det", "ptt", "closest", "tensor", "boot"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const WishedOption* find_option(const std::vector<WishedOption>& options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.name == name; });
  return found == options.end() ? nullptr : &*found;
}

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
    if (!glyph_pool_) {
      CGL_TRY_ASSIGN(glyph_pool_, ThreadPool::create(1));
    }
    CGL_TRY_ASSIGN(const FieldGlyphs found, glyphs_of_slice(run_.prepared.data.prepared.field, axis, mm, *glyph_pool_));
    return glyph_bytes(found);
  }
  [[nodiscard]] Result<view::SavedRun> save(const std::vector<WishedOption>& wish, const CancelToken& cancel) override;

 private:
  static CommonValues quiet(CommonValues common) {
    common.progress = ProgressStyle::silent;
    common.force = true;
    return common;
  }

  [[nodiscard]] std::vector<std::string> words_for(const std::vector<WishedOption>& wish, bool shown) const;
  [[nodiscard]] std::string command_for(const std::vector<WishedOption>& wish) const;
  [[nodiscard]] Result<std::vector<WishedOption>> accept(const std::vector<WishedOption>& wish) const;
  [[nodiscard]] Result<ParsedArguments> complete(const std::vector<WishedOption>& wish, Getter& getter) const;
  [[nodiscard]] Status open_session();
  [[nodiscard]] Status offer_getters();
  void make_facts();
  void publish();

  LiveSource source_;
  const fs::path scratch_;
  VerbContext& context_;
  VerbContext save_context_;
  std::vector<WishedOption> own_options_;  // of which the command does not tell
  const Verb verb_ = track_verb();
  const std::vector<Argument> known_arguments_ = all_arguments(verb_);
  TrackRun run_;                            // the field; its arguments are those of the request that is answered
  std::int64_t reach_voxels_ = 0;           // that the field was prepared for
  std::optional<double> lowest_threshold_;  // none: any
  std::string first_getter_;
  std::vector<std::string> getters_;
  std::shared_ptr<TrackingSession> session_;
  std::unique_ptr<ring::Runtime> runtime_;
  std::unique_ptr<TrackingActors> actor_;
  std::unique_ptr<ring::TelemetryPublisher> publisher_;
  Json facts_;
  std::unique_ptr<ThreadPool> glyph_pool_;  // of its own: the other one is tracking
  std::vector<WishedOption> saved_wish_;
  std::optional<view::SavedRun> saved_;
};

std::vector<std::string> ActorLiveTracks::words_for(const std::vector<WishedOption>& wish, bool shown) const {
  std::vector<std::string> words;
  const auto shown_text = [&](const std::string& text) {
    if (!shown || source_.hidden_folder.empty() || !text.starts_with(source_.hidden_folder)) return text;
    return text.substr(source_.hidden_folder.size());
  };
  for (const std::string& file : source_.data) words.push_back(shown_text(file));
  const auto add = [&](const WishedOption& option) {
    if (option.is_flag) words.push_back("--" + option.name);
    // In one word: a text never becomes a word of its own, which could name a file.
    for (const std::string& text : option.texts) words.push_back(fmt::format("--{}={}", option.name, shown_text(text)));
  };
  for (const WishedOption& option : source_.options) {
    if (find_option(wish, option.name) == nullptr) add(option);
  }
  for (const WishedOption& option : wish) add(option);
  if (!shown) std::for_each(own_options_.begin(), own_options_.end(), add);
  return words;
}

std::string ActorLiveTracks::command_for(const std::vector<WishedOption>& wish) const {
  std::string command = source_.before + "cingulum track";
  for (const std::string& word : words_for(wish, true)) command += " " + shell_word(word);
  return command + " --out tracks.trx";
}

// The request in the names of `track`, with what it leaves out.
Result<std::vector<WishedOption>> ActorLiveTracks::accept(const std::vector<WishedOption>& wish) const {
  std::vector<WishedOption> accepted;
  for (const WishedOption& option : wish) {
    if (option.name == "sphere") {
      if (option.texts.size() != 1) return fail_argument("seed_sphere", "a request has one sphere");
      accepted.push_back({"seed-sphere", option.texts, false});
      continue;
    }
    const bool known = is_one_of(live_options, option.name);
    const bool settled = find_option(source_.options, "peaks") != nullptr && is_one_of(settled_by_peaks, option.name);
    if (!known || settled) {
      return fail(ErrorKind::invalid_argument,
                  "'{}' cannot be changed while the field stays; start `cingulum view` with it", option.name);
    }
    if (option.name == "include" || option.name == "include-ordered" || option.name == "exclude" ||
        option.name == "stop") {
      for (const std::string& text : option.texts) {
        if (!parse_sphere(text))
          return fail(ErrorKind::invalid_argument, "--{} '{}': accepted is a sphere x,y,z,r", option.name, text);
      }
    }
    const auto argument = std::find_if(known_arguments_.begin(), known_arguments_.end(),
                                       [&](const Argument& one) { return one.name == option.name; });
    if (argument == known_arguments_.end() || (argument->type == ArgumentType::flag) != option.is_flag) {
      return fail(ErrorKind::invalid_argument, "--{} {}", option.name,
                  option.is_flag ? "needs a value" : "takes no value");
    }
    accepted.push_back(option);
  }
  if (find_option(accepted, "seed-sphere") == nullptr) return fail_argument("seed_sphere", "a request has a sphere");
  if (find_option(accepted, "dg") == nullptr) accepted.insert(accepted.begin(), {"dg", {first_getter_}, false});
  if (find_option(accepted, "nseeds") == nullptr) {
    accepted.push_back({"nseeds", {fmt::format("{}", default_live_seeds)}, false});
  }
  return accepted;
}

Result<ParsedArguments> ActorLiveTracks::complete(const std::vector<WishedOption>& wish, Getter& getter) const {
  const std::vector<std::string> words = words_for(wish, false);
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
  std::vector<WishedOption> wish = {{"dg", {first_getter_}, false}};
  Getter getter = Getter::prob;
  CGL_TRY_ASSIGN(ParsedArguments arguments, complete(wish, getter));
  // Getters have defaults of their own for it, and a field is of one kind: so every command says which.
  const bool chosen = find_option(source_.options, "amplitudes") != nullptr ||
                      find_option(source_.options, "interpolate") != nullptr ||
                      find_option(source_.options, "full-sphere") != nullptr;
  const bool harmonics =
      find_option(source_.options, "sh") != nullptr || (series && getter != Getter::boot && getter != Getter::tensor);
  if (harmonics && !chosen) source_.options.push_back({"interpolate", {arguments.text("interpolate")}, false});
  if (series) {
    // Voxels that only a lower threshold reaches are not stored; ptt reads farthest.
    const double threshold = stop_threshold(arguments);
    lowest_threshold_ = threshold > 0 ? 0.5 * threshold : threshold;
    wish.push_back({"stop-threshold", {fmt::format("{}", *lowest_threshold_)}, false});
    CGL_TRY_ASSIGN(const FieldModel model, choose_model(arguments, getter));
    if (getter != Getter::boot && model != FieldModel::dti) wish.front().texts = {"ptt"};
  }
  CGL_TRY_ASSIGN(const ParsedArguments command_line, parse_command_line(verb_, words_for(wish, false)));
  CGL_TRY(settle_track(command_line, context_, run_));
  CGL_TRY(prepare_field(command_line, {}, context_, run_));
  reach_voxels_ = series ? run_.plan.reach_voxels : std::numeric_limits<std::int64_t>::max();
  CGL_TRY(open_session());
  CGL_TRY(offer_getters());
  make_facts();
  publish();
  return {};
}

Status ActorLiveTracks::open_session() {
  CGL_TRY_ASSIGN(ThreadPool* const pool, context_.pool());
  CGL_TRY_ASSIGN(DeviceRegistry* const registry, run_.wanted->registry());
  CGL_TRY_ASSIGN(const std::vector<Device*> devices, choose_devices(*registry, run_.wanted->names(), 1));
  run_.options.stop_rule = stop_rule(run_.arguments, run_.prepared.data);
  CGL_TRY_ASSIGN(run_.plan, make_tracking_plan(run_.options, run_.source.geometry));
  // The field stays where it is, in run_, which outlives the session.
  const std::shared_ptr<const Field> field(std::shared_ptr<void>(), &run_.prepared.data.prepared.field);
  TrackingSessionOptions options;
  if (lowest_threshold_) options.lowest_stop_threshold = static_cast<float>(*lowest_threshold_);
  auto opened = TrackingSession::open(*devices.front(), *pool, field, run_.plan, options);
  if (!opened && run_.wanted->names() == "auto" && devices.front()->description().backend != Backend::cpu) {
    log_warning("--device auto: {} not used: {}", devices.front()->id(), opened.error());
    CGL_TRY_ASSIGN(Device* const cpu, registry->select_one("cpu"));
    opened = TrackingSession::open(*cpu, *pool, field, run_.plan, options);
  }
  CGL_TRY_ASSIGN(session_, std::move(opened));
  CGL_TRY_ASSIGN(runtime_, ring::Runtime::create());
  CGL_TRY_ASSIGN(actor_, start_tracking_actor(*runtime_, "view", session_));
  return {};
}

// Those that can track this field: tried on one seed, in the middle of the image.
Status ActorLiveTracks::offer_getters() {
  const bool series = !source_.data.empty();
  const bool bootstrap = run_.getter == Getter::boot;
  const ImageGeometry& geometry = run_.source.geometry;
  const numerics::Vec3d middle = geometry.voxel_to_world.apply({static_cast<double>(geometry.size[0] / 2),
                                                                static_cast<double>(geometry.size[1] / 2),
                                                                static_cast<double>(geometry.size[2] / 2)});
  std::optional<FieldModel> model;
  if (series) {
    CGL_TRY_ASSIGN(model, choose_model(run_.arguments, run_.getter));
  }
  Status first;
  for (const std::string_view name : all_getters) {
    const bool only_first = find_option(source_.options, "peaks") != nullptr;
    if (only_first && name != first_getter_) continue;
    const auto offer = [&]() -> Status {
      const std::vector<WishedOption> wish = {
          {"dg", {std::string(name)}, false},
          {"nseeds", {"1"}, false},
          {"seed-sphere", {fmt::format("{},{},{},1", middle.x, middle.y, middle.z)}, false}};
      Getter getter = Getter::prob;
      CGL_TRY_ASSIGN(run_.arguments, complete(wish, getter));
      run_.getter = getter;
      if (series) {
        CGL_TRY_ASSIGN(const FieldModel fitted, choose_model(run_.arguments, getter));
        if (fitted != *model || (getter == Getter::boot) != bootstrap) {
          return fail(ErrorKind::unavailable, "it tracks another model");
        }
      }
      CGL_TRY(plan_seeds(context_, run_));
      if (run_.plan.reach_voxels > reach_voxels_) return fail(ErrorKind::unavailable, "it reads farther");
      CGL_TRY(session_->ask({.plan = run_.plan, .seeds = std::move(run_.seeds)}));
      return {};
    };
    const Status offered = offer();
    if (offered) {
      getters_.emplace_back(name);
    } else {
      log_debug("--dg {} is not offered: {}", name, offered.error());
      if (name == first_getter_) first = offered;
    }
  }
  return first;
}

void ActorLiveTracks::make_facts() {
  const ImageGeometry& geometry = run_.source.geometry;
  const Field& field = run_.prepared.data.prepared.field;
  Json options = Json::object();
  for (const Argument& argument : all_arguments(verb_)) {
    if (!is_one_of(live_options, argument.name)) continue;
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
  for (const std::string& name : getters_) {
    Getter getter = Getter::prob;
    const auto completed = complete({{"dg", {name}, false}}, getter);
    if (!completed) continue;
    const Json all = options_for_sidecar(verb_, *completed)["options"];
    Json own = Json::object();
    for (const std::string_view option : live_options) {
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
  if (lowest_threshold_) lowest = *lowest_threshold_;
  facts_ = {{"field", source_.name},
            {"getters", getters_},
            {"getter", first_getter_},
            {"lowest_stop_threshold", lowest},
            {"options", std::move(options)},
            {"defaults", std::move(defaults)},
            {"affine", std::move(affine)},
            {"glyphs", field.kind == FieldKind::harmonics || field.kind == FieldKind::amplitudes},
            {"shape", {geometry.size[0], geometry.size[1], geometry.size[2]}},
            {"device", session_->name()},
            {"most_seeds", most_live_seeds},
            {"truth", false}};
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
  const auto begin = std::chrono::steady_clock::now();
  const auto milliseconds = [&] { return 1e3 * seconds_since(begin); };
  CGL_TRY_ASSIGN(const std::vector<WishedOption> wish, accept(request.wish));
  CGL_TRY_ASSIGN(run_.arguments, complete(wish, run_.getter));
  const std::string& name = run_.arguments.text("dg");
  if (std::find(getters_.begin(), getters_.end(), name) == getters_.end()) {
    return fail_argument("dg", "{} {}: the field that is tracked has {}", argument_name("dg"), name,
                         fmt::join(getters_, ", "));
  }
  if (run_.arguments.integer("nseeds") > most_live_seeds) {
    return fail_argument("nseeds", "{} {}: a request has at most {}", argument_name("nseeds"),
                         run_.arguments.integer("nseeds"), most_live_seeds);
  }
  CGL_TRY(plan_seeds(context_, run_));
  // The session refuses it as well, without knowing who asks.
  if (lowest_threshold_ && run_.plan.stop_threshold < static_cast<float>(*lowest_threshold_)) {
    return fail_argument("stop_threshold", "{} {}: the field was prepared for {} and higher",
                         argument_name("stop_threshold"), run_.plan.stop_threshold, *lowest_threshold_);
  }
  if (run_.plan.reach_voxels > reach_voxels_) {
    return fail(ErrorKind::invalid_argument, "this plan reads {} voxels about a point, the field was prepared for {}",
                run_.plan.reach_voxels, reach_voxels_);
  }
  std::vector<numerics::Vec3> seeds(static_cast<std::size_t>(run_.seeds->count()));
  run_.seeds->fill(0, seeds);
  run_.run_options.save_seeds = true;
  TrackingStatistics statistics;
  Finisher finisher(run_.prepared.data.geometry, run_.run_options, false, statistics);
  CGL_TRY_ASSIGN(const auto stream, actor_->ask({.plan = run_.plan, .seeds = seeds, .channel = page}));
  std::optional<double> first_ms;
  double tracking_ms = 0;
  while (true) {
    CGL_TRY(cancel.check());
    const double before = milliseconds();
    // The token is looked at while the actor is at work.
    auto batch = stream->next(std::chrono::milliseconds(20));
    tracking_ms += milliseconds() - before;
    if (!batch && batch.error().kind() == ErrorKind::timed_out) continue;
    if (!batch) return tl::make_unexpected(std::move(batch.error()));
    if (!batch->has_value()) break;
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
  }
  Json reasons = Json::object();
  for (std::size_t i = 0; i < end_reason_count; ++i) {
    if (statistics.end_reasons[i] == 0) continue;
    reasons[std::string(end_reason_name(static_cast<EndReason>(i)))] = statistics.end_reasons[i];
  }
  const double total_ms = milliseconds();
  const Json end = {
      {"seeds", seeds.size()},
      {"seeds_outside", statistics.seeds_outside},
      {"streamlines", statistics.streamlines},
      {"kept", statistics.kept},
      {"points", statistics.points},
      {"mean_mm", statistics.kept > 0 ? statistics.lengths.mean_mm() : 0.0},
      {"milliseconds", {{"first", first_ms.value_or(total_ms)}, {"tracking", tracking_ms}, {"total", total_ms}}},
      {"end_reasons", std::move(reasons)},
      {"command", command_for(wish)},
      {"score", nullptr}};
  return send(view::make_message(view::MessageKind::end, request.number,
                                 end.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

Result<view::SavedRun> ActorLiveTracks::save(const std::vector<WishedOption>& asked, const CancelToken& cancel) {
  CGL_TRY_ASSIGN(std::vector<WishedOption> wish, accept(asked));
  if (saved_ && saved_wish_ == wish) return *saved_;
  const auto begin = std::chrono::steady_clock::now();
  saved_.reset();
  view::SavedRun saved;
  saved.command = command_for(wish);
  const fs::path folder = scratch_ / "saved";
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) return fail(ErrorKind::io, "making the folder of a saved run: {}", error.message());
  saved.tractogram = folder / "tracks.trx";
  saved.sidecar = folder / "tracks.trx.json";
  std::vector<std::string> words = words_for(wish, false);
  words.insert(words.end(), {"--out", saved.tractogram.string(), "--force"});
  CGL_TRY_ASSIGN(const ParsedArguments command_line, parse_command_line(verb_, words));
  if (command_line.integer("nseeds") > most_live_seeds) {
    return fail_argument("nseeds", "{} {}: a request has at most {}", argument_name("nseeds"),
                         command_line.integer("nseeds"), most_live_seeds);
  }
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

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./,:=+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace cingulum
