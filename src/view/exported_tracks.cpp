#include "view/exported_tracks.hpp"

#include <algorithm>

#include "base/elapsed.hpp"
#include "base/json_fields.hpp"
#include "formats/trx.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_options.hpp"
#include "runs/track/track_result.hpp"
#include "runs/track/track_seeds.hpp"
#include "runs/track/track_sidecar.hpp"
#include "view/field_bytes.hpp"
#include "view/field_glyphs.hpp"
#include "view/field_peaks.hpp"
#include "view/memory_files.hpp"
#include "view/view_messages.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

// Software is slow: the first lines shall be seen, and a click shall not wait for the last.
constexpr double first_range_seconds = 0.05;
constexpr double range_seconds = 0.2;
constexpr std::uint64_t most_range_seeds = 4096;

constexpr const char* saved_name = "/tracks.trx";

class NoSeeds final : public Seeds {
 public:
  [[nodiscard]] std::uint64_t count() const override { return 0; }
  void fill(std::uint64_t, std::span<numerics::Vec3>) const override {}
};

// `truth` is the phantom as its file has it.
template <class Visit, class Facts>
void visit_facts(Visit& visit, Facts& facts, Json& truth) {
  visit("data", facts.source.data);
  visit("options", facts.source.options);
  visit("name", facts.source.name);
  visit("before", facts.source.before);
  visit("first_getter", facts.first_getter);
  visit("getters", facts.limits.getters);
  visit("lowest_threshold", facts.limits.lowest_threshold);
  visit("reach_voxels", facts.limits.reach_voxels);
  visit("min_signal", facts.min_signal);
  visit.optional("truth", truth);
  visit.optional("model", facts.model);
  visit("arguments", facts.arguments);
}

}  // namespace

Json facts_json(const ExportedFacts& facts) {
  Json truth = facts.truth ? Json::parse(format_phantom(*facts.truth)) : Json();
  JsonWriter write;
  visit_facts(write, facts, truth);
  return write.take();
}

Result<ExportedFacts> facts_of_json(const Json& json) {
  ExportedFacts facts;
  Json truth;
  JsonReader read(json, "tracks");
  visit_facts(read, facts, truth);
  if (!read.status() || !facts.arguments.is_object()) {
    return fail(ErrorKind::corrupt, "the exported facts of what is tracked are damaged; export again");
  }
  if (!truth.is_null()) {
    CGL_TRY_ASSIGN(facts.truth, parse_phantom(truth.dump()));
  }
  return facts;
}

ExportedTracks::ExportedTracks(ExportedFacts facts) : facts_(std::move(facts)) {
  if (!facts_.truth) return;
  const double edge = facts_.truth->geometry.smallest_edge_mm();
  judge_.emplace(facts_.truth->bundles, edge, 0.5 * edge);  // as live_tracks.cpp has it
}

Result<std::unique_ptr<ExportedTracks>> ExportedTracks::open(ExportedFacts facts,
                                                             std::span<const std::byte> field_head) {
  std::unique_ptr<ExportedTracks> tracks(new ExportedTracks(std::move(facts)));
  CGL_TRY_ASSIGN(tracks->field_, view::field_of_head_bytes(field_head));
  CGL_TRY_ASSIGN(tracks->pool_, ThreadPool::create(1));
  return tracks;
}

std::span<std::byte> ExportedTracks::records() {
  return view::record_memory(field_);
}

Status ExportedTracks::use_adapter(const DrivenAdapter& adapter) {
  CGL_TRY_ASSIGN(driven_, make_driven_tracking(field_, adapter));
  return {};
}

// What the program completed for the getter, and what is asked over it. An option that was not asked for has the value
// that it would have on the command line: which one never depends on other options of requests.
Result<TrackRequest> ExportedTracks::complete(const std::vector<ArgumentText>& asked) const {
  const std::string& getter = find_option(asked, "dg")->texts.front();
  const JsonView of_getter = JsonView(facts_.arguments)[getter];
  if (!of_getter["options"].is_there() || !of_getter["given"].is_there()) {
    return fail_argument("dg", "{} {}: the field that is tracked has another", argument_name("dg"), getter);
  }
  const std::vector<std::string> given = of_getter["given"].texts();
  TrackRequest request;
  for (const TrackField& field : track_fields()) {
    const Argument& argument = field.argument;
    const bool was_given = std::find(given.begin(), given.end(), argument.name) != given.end();
    if (const ArgumentText* const one = find_option(asked, argument.name)) {
      CGL_TRY(field.set_texts(request, one->texts, true));
      continue;
    }
    const JsonView stored = of_getter["options"][argument.name];
    if (!stored.is_there()) continue;
    if (argument.type == ArgumentType::flag) {
      field.set(request, {stored.flag().value_or(false)}, was_given);
    } else {
      const bool is_one = stored.text() != nullptr;
      CGL_TRY(field.set_texts(request, is_one ? std::vector{*stored.text()} : stored.texts(), was_given));
    }
  }
  CGL_TRY(fill_in_defaults(track_fields(), request));
  return request;
}

Status ExportedTracks::ask(std::uint32_t number, std::string_view asked, bool saves) {
  begin_ = Clock::now();
  number_ = number;
  saves_ = saves;
  writer_.reset();
  finisher_.reset();
  tracker_.reset();
  seeds_.reset();
  done_ = 0;
  first_ms_.reset();
  tracking_ms_ = 0;
  statistics_ = {};
  verdicts_ = {};
  histograms_.reset();
  CGL_TRY_ASSIGN(std::vector<ArgumentText> arguments, view::parse_track_request(asked));
  if (take_score(arguments) && judge_ && !saves) histograms_.emplace();
  CGL_TRY_ASSIGN(asked_, accept_page_request(arguments, facts_.source, facts_.first_getter));
  CGL_TRY_ASSIGN(request_, complete(asked_));
  CGL_TRY(facts_.limits.check(request_));
  CGL_TRY_ASSIGN(const Getter getter, getter_from_name(request_.dg.value()));
  CGL_TRY_ASSIGN(tracking_options_, tracking_options(request_, getter, field_.geometry.smallest_edge_mm()));
  TrackingOptions& options = tracking_options_;
  options.stop_rule = stop_rule(request_, {});  // which `auto` is was settled when the field was exported
  CGL_TRY_ASSIGN(plan_, make_tracking_plan(options, field_.geometry));
  if (getter == Getter::boot) plan_.boot_min_signal = static_cast<float>(facts_.min_signal);
  CGL_TRY(facts_.limits.check(plan_));
  CGL_TRY_ASSIGN(seeds_, seeds_in_sphere(request_, field_.geometry));
  options_ = {};
  CGL_TRY_ASSIGN(options_.selection, selection_rules(request_, options, plan_, field_.geometry));
  options_.save_seeds = !saves;
  if (driven_) {
    CGL_TRY(driven_->use(plan_));
  } else {
    if (!cpu_) {
      static const NoSeeds none;
      cpu_ = make_cpu_tracker(*pool_);
      CGL_TRY(cpu_->prepare(plan_, field_, none, nullptr));
    }
    CGL_TRY_ASSIGN(tracker_, cpu_->beside(plan_, *seeds_, nullptr));
  }
  finisher_ = std::make_unique<Finisher>(field_.geometry, options_, false, statistics_);
  if (saves) {
    TractogramLayout layout;
    layout.format = TractogramFormat::trx;
    layout.reference = field_.geometry;
    layout.position_type = element_type_of<float>();
    WriteOptions write;
    write.force = true;
    write.layer = &view::memory_files();
    write.buffer_bytes = std::size_t{8} << 20U;  // offsets stay in memory: there is no other place for them
    CGL_TRY_ASSIGN(writer_, create_trx_writer(saved_name, layout, write));
  }
  plan_ms_ = 1e3 * seconds_since(begin_);
  return {};
}

std::optional<SeedRange> ExportedTracks::next_range() {
  const std::uint64_t left = seeds_->count() - done_;
  if (left == 0) return std::nullopt;
  const double seconds = done_ == 0 ? first_range_seconds : range_seconds;
  const std::uint64_t count = std::min(pace_.seeds_of_batch(plan_.getter, left, seconds), most_range_seeds);
  range_ = {done_, count};
  range_begin_ = Clock::now();
  return range_;
}

Status ExportedTracks::track_by_cpu() {
  return tracker_->track(range_, batch_);
}

Result<std::vector<std::byte>> ExportedTracks::end_range() {
  if (driven_) CGL_TRY(driven_->assemble(batch_));
  const double seconds = seconds_since(range_begin_);
  pace_.note(plan_.getter, range_.count, seconds);
  tracking_ms_ += 1e3 * seconds;
  done_ += range_.count;
  statistics_.seeds_outside += batch_.seeds_outside;
  statistics_.seeds_without_direction += batch_.seeds_without_direction;
  statistics_.steps += batch_.steps;
  CGL_TRY(finisher_->finish(batch_));
  const TractogramBatch& kept = finisher_->kept();
  std::vector<std::byte> message;
  if (kept.streamline_count() == 0) return message;
  if (saves_) {
    CGL_TRY(writer_->append(kept));
    return message;
  }
  CGL_TRY_ASSIGN(message, view::make_batch_message(number_, {.offsets = kept.offsets,
                                                             .positions = kept.positions,
                                                             .seed_index = kept.streamline_data[0],
                                                             .end_reasons = kept.streamline_data[2]}));
  if (!first_ms_) first_ms_ = 1e3 * seconds_since(begin_);
  for (std::size_t i = 0; histograms_ && i < kept.streamline_count(); ++i) {
    ++verdicts_[static_cast<std::size_t>(judge_->judge(kept.streamline(i), *histograms_).verdict)];
  }
  return message;
}

Result<std::vector<std::byte>> ExportedTracks::end() {
  if (saves_) {
    CGL_TRY(writer_->commit());
    writer_.reset();
    return view::memory_files().take(saved_name);
  }
  const double total = 1e3 * seconds_since(begin_);
  Json end = answer_end(seeds_->count(), statistics_,
                        {.first_ms = first_ms_.value_or(total),
                         .plan_ms = plan_ms_,
                         .tracking_ms = tracking_ms_,
                         .copies_ms = total - plan_ms_ - tracking_ms_,
                         .total_ms = total},
                        command());
  end["score"] = score_json(verdicts_);
  return view::make_message(view::MessageKind::end, number_, end.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string ExportedTracks::command() const {
  return command_of_request(facts_.source, asked_);
}

Json ExportedTracks::sidecar() const {
  Json arguments = arguments_for_sidecar(request_);
  // Files by the names that the command has.
  for (const ArgumentText& option : facts_.source.options) {
    if (arguments["options"].contains(option.name) && option.texts.size() == 1) {
      arguments["options"][option.name] = option.texts.front();
    }
  }
  Json field = field_json(field_);
  if (field_.sphere.name.empty()) field.erase("sphere");  // exported by its directions alone; the option names it
  return {{"made_by", "a page of cingulum view --export"},
          {"rules", present_rules},
          {"arguments", std::move(arguments)},
          {"model", facts_.model},
          {"field", std::move(field)},
          {"plan", plan_json(plan_, tracking_options_)},
          {"end_reason_codes", end_reason_codes_json()},
          {"result", result_json(statistics_, false)},
          {"command", command()}};
}

Result<std::vector<std::byte>> ExportedTracks::glyphs(int axis, double mm) {
  CGL_TRY_ASSIGN(const FieldGlyphs found, glyphs_of_slice(field_, axis, mm, *pool_));
  return glyph_bytes(found);
}

Result<std::vector<std::byte>> ExportedTracks::peaks(int axis, double mm) {
  return peaks_of_slice(field_, axis, mm, *pool_);
}

void BitSum::add(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) sum_ = (sum_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
}

std::string BitSum::hex() const {
  return fmt::format("{:016x}", sum_);
}

Result<std::string> sum_by_cpu(ExportedTracks& tracks, std::string_view asked) {
  tracks.use_cpu();
  CGL_TRY(tracks.ask(0, asked, false));
  BitSum sum;
  while (tracks.next_range()) {
    CGL_TRY(tracks.track_by_cpu());
    CGL_TRY_ASSIGN(const std::vector<std::byte> message, tracks.end_range());
    sum.add(message);
  }
  return sum.hex();
}

}  // namespace cingulum
