// The table of TrackRequest, and the whole run as a call.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/read_file.hpp"
#include "dmri/phantom/phantom_files.hpp"
#include "formats/tractogram.hpp"
#include "runs/track/track_defaults.hpp"
#include "runs/track/track_fields.hpp"
#include "runs/track/track_run.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::track_request_tests {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TEST(TrackFields, every_name_stands_once_and_every_member_has_one_row) {
  std::set<std::string> names;
  TrackRequest request;
  for (const TrackField& field : track_fields()) {
    EXPECT_TRUE(names.insert(field.argument.name).second) << field.argument.name;
    EXPECT_FALSE(field.has(request)) << field.argument.name << " is the member of another row, too";
    if (field.argument.type == ArgumentType::flag) {
      field.set(request, {true}, true);
    } else if (field.argument.repeatable) {
      field.set(request, {std::string("a")}, true);
    } else {
      const std::string text = !field.argument.choices.empty()                 ? field.argument.choices.front()
                               : field.argument.type == ArgumentType::file_in  ? "file"
                               : field.argument.type == ArgumentType::file_out ? "file"
                               : field.argument.type == ArgumentType::text     ? "text"
                               : field.argument.range.minimum.value_or(1) < 1  ? "0.5"
                                                                               : "2";
      const std::string whole =
          field.argument.type == ArgumentType::integer || field.argument.type == ArgumentType::key ? "2" : text;
      ASSERT_TRUE(field.set_texts(request, std::span(&whole, 1), true)) << field.argument.name;
    }
    EXPECT_TRUE(field.given(request)) << field.argument.name;
  }
}

TEST(TrackFields, defaults_and_presets_are_values_that_the_table_accepts) {
  for (const TrackField& field : track_fields()) {
    for (const std::string_view value : field.traits.default_by_getter) {
      if (value.empty()) continue;
      EXPECT_TRUE(parse_value(field.argument, value)) << field.argument.name << " " << value;
    }
  }
  std::size_t accepted = 0;
  for (const std::string& preset : preset_names()) {
    for (const Getter getter : getters_of_defaults) {
      TrackRequest request;
      request.dg = std::string(getter_name(getter));
      request.preset = preset;
      const Status status = complete_request(request);
      if (status) {
        ++accepted;
        continue;
      }
      EXPECT_NE(status.error().message().find("it has no"), std::string::npos) << status.error().message();
    }
  }
  EXPECT_EQ(accepted, 12u);
}

TEST(TrackFields, a_value_that_was_given_goes_before_preset_and_getter) {
  TrackRequest request;
  request.dg = "prob";
  request.preset = "dipy";
  request.max_angle = 33.0;
  ASSERT_TRUE(complete_request(request));
  EXPECT_EQ(request.max_angle.value(), 33);                                     // given
  EXPECT_EQ(request.step_size.value(), (Length{0.2, LengthUnit::millimetre}));  // by the preset
  EXPECT_FALSE(request.step_size.given());
  EXPECT_EQ(request.fa_threshold.value(), 0.2);  // by the getter
}

TEST(TrackFields, what_may_change_per_answer_names_no_file_and_no_whole_run) {
  std::size_t count = 0;
  for (const TrackField& field : track_fields()) {
    if (!may_change_per_answer(field)) continue;
    ++count;
    EXPECT_NE(field.argument.type, ArgumentType::file_in) << field.argument.name;
    EXPECT_NE(field.argument.type, ArgumentType::file_out) << field.argument.name;
    EXPECT_TRUE(may_change_while_field_stays(field)) << field.argument.name;
    EXPECT_TRUE(decides_result(field.phase)) << field.argument.name;
  }
  EXPECT_GT(count, 30u);
}

// A small phantom and a machine of two threads without devices but the CPU.
class TrackCall : public ::testing::Test {
 protected:
  void SetUp() override {
    PhantomRequest phantom;
    phantom.model = phantom_preset("crossing", {}).value();
    phantom.grid.voxel_mm = {4, 4, 4};
    phantom.scheme = named_scheme(phantom.model.scheme).value();
    phantom.subsamples = 2;
    const auto made = write_phantom(phantom, folder_ / "phantom", {}, *machine_.pool().value(), {});
    ASSERT_TRUE(made) << made.error().message();
  }

  [[nodiscard]] TrackRequest request() const {
    TrackRequest request;
    request.data = std::vector<std::string>{(folder_ / "phantom" / "dwi.nii.gz").string()};
    request.mask = (folder_ / "phantom" / "mask.nii.gz").string();
    request.dg = "prob";
    request.nseeds = 300;
    request.device = "cpu";
    return request;
  }
  [[nodiscard]] std::string bytes_of(const fs::path& path) const { return read_text_file(path).value(); }

  TemporaryFolder folder_;
  Settings settings_ = Settings::from_variables({});
  RunMachine machine_{settings_, {.threads = 2}};
};

// Counts what it is given.
class CountingWriter final : public TractogramWriter {
 public:
  Status append(const TractogramBatch& batch) override {
    streamlines += batch.streamline_count();
    points += batch.point_count();
    return {};
  }
  Status add_group(TractogramGroup /*group*/) override { return {}; }
  Status commit() override {
    committed = true;
    return {};
  }
  std::size_t streamlines = 0, points = 0;
  bool committed = false;
};

TEST_F(TrackCall, a_request_is_tracked_into_its_file_and_into_a_writer_alike) {
  TrackRequest to_file = request();
  to_file.out = (folder_ / "tracks.trx").string();
  const auto made = track(to_file, machine_);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->path, folder_ / "tracks.trx");
  EXPECT_GT(made->statistics.kept, 10u);
  EXPECT_EQ(made->asked_seeds, 300u);
  const auto reader = TractogramReader::open(made->path);
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ((*reader)->layout().streamline_count, static_cast<std::int64_t>(made->statistics.kept));

  CountingWriter writer;
  const auto taken =
      track(request(), machine_, [&](const TractogramLayout&) -> Result<TractogramWriter*> { return &writer; });
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_TRUE(writer.committed);
  EXPECT_EQ(writer.streamlines, made->statistics.kept);
  EXPECT_EQ(writer.points, made->statistics.points);
  Json of_file = made->sidecar, of_writer = taken->sidecar;
  of_file.erase("run");
  of_writer.erase("run");
  EXPECT_EQ(of_file, of_writer) << "the sidecar does not say where streamlines went";
}

TEST_F(TrackCall, a_sidecar_repeats_its_run_to_the_byte) {
  TrackRequest first = request();
  first.out = (folder_ / "first.trx").string();
  first.max_angle = 22.0;
  first.include = std::vector<std::string>{"0,0,0,12"};
  ASSERT_TRUE(track(first, machine_));
  TrackRequest again;
  again.from = (folder_ / "first.trx.json").string();
  again.out = (folder_ / "again.trx").string();
  again.device = "cpu";
  const auto repeated = track(again, machine_);
  ASSERT_TRUE(repeated) << repeated.error().message();
  EXPECT_EQ(bytes_of(folder_ / "first.trx"), bytes_of(folder_ / "again.trx"));
  EXPECT_EQ(repeated->sidecar["arguments"]["options"]["max-angle"], "22");
  again.out = (folder_ / "other.trx").string();
  again.max_angle = 23.0;
  ASSERT_TRUE(track(again, machine_));
  EXPECT_NE(bytes_of(folder_ / "first.trx"), bytes_of(folder_ / "other.trx"));
}

TEST_F(TrackCall, a_sidecar_holds_every_field_on_which_the_result_depends_and_no_other) {
  TrackRequest to_file = request();
  to_file.out = (folder_ / "tracks.trx").string();
  const auto made = track(to_file, machine_);
  ASSERT_TRUE(made) << made.error().message();
  const Json& options = made->sidecar["arguments"]["options"];
  TrackRequest completed = to_file;
  ASSERT_TRUE(complete_request(completed));
  for (const TrackField& field : track_fields()) {
    const bool expected =
        decides_result(field.phase) && (field.has(completed) || field.argument.type == ArgumentType::flag);
    EXPECT_EQ(options.contains(field.argument.name), expected) << field.argument.name;
  }
}

TEST_F(TrackCall, a_field_that_stays_takes_other_plans_and_refuses_what_it_was_not_made_for) {
  TrackRun run;
  ASSERT_TRUE(settle_track(request(), machine_, run));
  ASSERT_TRUE(prepare_field({}, machine_, run));
  const auto completed = [&](auto&& change) {
    TrackRequest other = request();
    change(other);
    EXPECT_TRUE(complete_request(other));
    return other;
  };
  const auto refusal = [&](auto&& change) {
    const Status status = change_request(completed(change), run);
    return status ? std::string("(accepted)") : status.error().message();
  };
  EXPECT_TRUE(change_request(completed([](TrackRequest& other) {
                               other.max_angle = 15.0;
                               other.step_size = Length{1.5, LengthUnit::millimetre};
                               other.dg = "det";
                             }),
                             run));
  EXPECT_EQ(run.getter, Getter::det);
  EXPECT_EQ(run.options.step_mm, 1.5);
  EXPECT_NE(refusal([](TrackRequest& other) { other.fa_threshold = 0.1; }).find("prepared for 0.2"), std::string::npos);
  EXPECT_NE(refusal([](TrackRequest& other) { other.dg = "boot"; }).find("another field"), std::string::npos);
  EXPECT_NE(refusal([](TrackRequest& other) { other.sh_order = 6; }).find("sh-order"), std::string::npos);
  EXPECT_NE(refusal([](TrackRequest& other) { other.mask.reset(); }).find("mask"), std::string::npos);
  // What was refused has changed nothing.
  EXPECT_EQ(run.getter, Getter::det);
  EXPECT_EQ(run.request.max_angle.value(), 15);
}

// ptt's default is to interpolate amplitudes and prob's is not: where it was said, it holds for both.
TEST_F(TrackCall, a_field_of_amplitudes_is_tracked_by_getters_with_another_default) {
  const auto with = [&](const char* getter, bool amplitudes) {
    TrackRequest other = request();
    other.dg = getter;
    if (amplitudes) other.amplitudes = true;
    return other;
  };
  TrackRun run;
  ASSERT_TRUE(settle_track(with("ptt", true), machine_, run));
  ASSERT_TRUE(prepare_field({}, machine_, run));
  const auto change = [&](TrackRequest other) {
    EXPECT_TRUE(complete_request(other));
    return change_request(std::move(other), run);
  };
  EXPECT_TRUE(change(with("prob", true)));
  EXPECT_EQ(run.getter, Getter::prob);
  TrackRequest by_choice = with("det", false);
  by_choice.interpolate = "amplitudes";
  EXPECT_TRUE(change(by_choice));
  const Status refused = change(with("prob", false));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("belongs to the field"), std::string::npos) << refused.error().message();
}

TEST_F(TrackCall, plans_of_a_field_that_stays_give_the_streamlines_of_runs_of_their_own) {
  const auto change = [](TrackRequest& other) {
    other.max_angle = 15.0;
    other.fa_threshold = 0.35;
    other.seed = std::uint64_t{9};
  };
  TrackRequest own = request();
  change(own);
  CountingWriter expected, found;
  ASSERT_TRUE(track(own, machine_, [&](const TractogramLayout&) -> Result<TractogramWriter*> { return &expected; }));
  TrackRun run;
  ASSERT_TRUE(settle_track(request(), machine_, run));
  ASSERT_TRUE(prepare_field({}, machine_, run));
  ASSERT_TRUE(complete_request(own));
  ASSERT_TRUE(change_request(own, run));
  ASSERT_TRUE(prepare_seeds(machine_, run));
  ASSERT_TRUE(track_into(run, found, std::chrono::steady_clock::now(), machine_));
  EXPECT_GT(expected.points, 100u);
  EXPECT_EQ(found.streamlines, expected.streamlines);
  EXPECT_EQ(found.points, expected.points);
}

// A fit that is kept under a key which leaves out a row would be taken for another one.
TEST_F(TrackCall, each_row_that_decides_the_field_of_a_series_is_in_the_key_of_its_fit) {
  const auto key_with = [&](const std::string& name, const std::string& text) {
    TrackRequest own = request();
    own.prepare = (folder_ / "kept.fit").string();
    if (!name.empty()) {
      EXPECT_TRUE(find_field(track_fields(), name)->set_texts(own, std::span(&text, 1), true)) << name;
    }
    TrackRun run;
    Status status = settle_track(std::move(own), machine_, run);
    if (status) status = prepare_field({}, machine_, run);
    EXPECT_TRUE(status) << name << ": " << (status ? "" : status.error().message());
    return run.prepared.key.dump();
  };
  const std::string key = key_with("", "");
  EXPECT_GT(key.size(), 100u);
  EXPECT_EQ(key, key_with("max-angle", "17")) << "what decides steps alone leaves the fit as it is";
  // What acts on a file of amplitudes or peaks alone, on how a map is read, or on numbers that either precision has.
  const std::set<std::string> of_files = {"amplitude-cutoff", "all-peaks", "stop-rule", "field-precision"};
  const std::map<std::string, std::string> others = {{"shell", "1000"},
                                                     {"model", "opdt"},
                                                     {"sphere", "small"},
                                                     {"sh-order", "4"},
                                                     {"sm-lambda", "0.01"},
                                                     {"min-signal", "1%"},
                                                     {"response-fa", "0.6"},
                                                     {"response-radius", "6"},
                                                     {"response-centre", "8,8,8"},
                                                     {"interpolate", "amplitudes"}};
  for (const TrackField& field : track_fields()) {
    const std::string& name = field.argument.name;
    // Files are in the key by their hashes.
    if (field.phase != Phase::field || field.argument.type == ArgumentType::file_in || of_files.contains(name))
      continue;
    if (name == "shell") continue;  // the phantom has one
    const bool flag = field.argument.type == ArgumentType::flag;
    ASSERT_TRUE(flag || others.contains(name)) << name << " is new: give it another value than its default here";
    EXPECT_NE(key_with(name, flag ? "true" : others.at(name)), key) << name;
  }
}

TEST_F(TrackCall, an_output_that_exists_is_refused_before_any_work) {
  std::ofstream(folder_ / "tracks.trx") << "mine";
  TrackRequest to_file = request();
  to_file.out = (folder_ / "tracks.trx").string();
  const auto made = track(to_file, machine_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), ErrorKind::already_exists);
  EXPECT_EQ(bytes_of(folder_ / "tracks.trx"), "mine");
}

}  // namespace
}  // namespace cingulum::track_request_tests
