#include "runs/request_table.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support/temporary_folder.hpp"

namespace cingulum::request_table_tests {
namespace {

// A request as any room may have one.
struct Sample {
  Parameter<std::string> name;
  Parameter<std::int64_t> count;
  Parameter<double> share;
  Parameter<Length> step;
  Parameter<bool> fast;
  Parameter<std::uint64_t> key;
  Parameter<std::vector<std::string>> regions;
  Parameter<std::string> input;
  Parameter<std::string> output;
};

RequestTable<Sample> sample_fields() {
  static const std::vector<RequestField<Sample>> rows = {
      {&Sample::name, Phase::plan, {.name = "name", .type = ArgumentType::choice, .choices = {"one", "two"}}},
      {&Sample::count,
       Phase::seeds,
       {.name = "count", .type = ArgumentType::integer, .range = {.minimum = 1, .maximum = 9}, .default_text = "3"}},
      {&Sample::share, Phase::plan, {.name = "share", .type = ArgumentType::real, .default_text = "0.25"}},
      {&Sample::step, Phase::plan, {.name = "step-size", .type = ArgumentType::length, .unit = "vox"}},
      {&Sample::fast, Phase::machine, {.name = "fast", .type = ArgumentType::flag}},
      {&Sample::key, Phase::seeds, {.name = "key", .type = ArgumentType::key, .default_text = "0"}},
      {&Sample::regions, Phase::selection, {.name = "region", .type = ArgumentType::text, .repeatable = true}},
      {&Sample::input, Phase::input, {.name = "input", .type = ArgumentType::file_in}},
      {&Sample::output, Phase::destination, {.name = "output", .type = ArgumentType::file_out}}};
  return rows;
}

TEST(Parameter, what_is_assigned_is_given_and_what_is_put_there_is_not) {
  Parameter<std::string> parameter;
  EXPECT_FALSE(parameter.has());
  EXPECT_FALSE(parameter.given());
  parameter.set_default("default");
  EXPECT_EQ(parameter.value(), "default");
  EXPECT_FALSE(parameter.given());
  parameter = "given";
  EXPECT_EQ(parameter.value(), "given");
  EXPECT_TRUE(parameter.given());
  parameter.reset();
  EXPECT_FALSE(parameter.has());
  EXPECT_FALSE(parameter.given());
}

TEST(Parameter, a_flag_and_a_list_may_be_read_without_a_value) {
  const Parameter<bool> flag;
  EXPECT_FALSE(flag.value());
  const Parameter<std::vector<std::string>> list;
  EXPECT_EQ(list.value().size(), 0u);
}

TEST(RequestTable, defaults_fill_what_has_no_value_and_nothing_else) {
  Sample sample;
  sample.share = 0.5;
  ASSERT_TRUE(fill_in_defaults(sample_fields(), sample));
  EXPECT_EQ(sample.count.value(), 3);
  EXPECT_FALSE(sample.count.given());
  EXPECT_EQ(sample.share.value(), 0.5);
  EXPECT_TRUE(sample.share.given());
  EXPECT_FALSE(sample.name.has());
  EXPECT_FALSE(sample.step.has());
}

TEST(RequestTable, texts_become_typed_values_and_the_same_texts_again) {
  TemporaryFolder folder;
  std::ofstream(folder / "in") << "x";
  const std::vector<ArgumentText> texts = {{"name", {"two"}, false},
                                           {"count", {"7"}, false},
                                           {"share", {"0.1"}, false},
                                           {"step-size", {"0.5vox"}, false},
                                           {"fast", {}, true},
                                           {"key", {"18446744073709551615"}, false},
                                           {"region", {"0,0,0,1", "a b"}, false},
                                           {"input", {(folder / "in").string()}, false}};
  Sample sample;
  ASSERT_TRUE(set_given(sample_fields(), texts, sample));
  EXPECT_EQ(sample.count.value(), 7);
  EXPECT_EQ(sample.step.value(), (Length{0.5, LengthUnit::voxel}));
  EXPECT_TRUE(sample.fast.value());
  EXPECT_EQ(sample.key.value(), ~std::uint64_t{0});
  EXPECT_EQ(sample.regions.value().size(), 2u);
  EXPECT_EQ(given_texts(sample_fields(), sample, [](const auto&) { return true; }), texts);
  const auto of_plan = [](const auto& field) { return field.phase == Phase::plan; };
  EXPECT_EQ(given_texts(sample_fields(), sample, of_plan), (std::vector<ArgumentText>{texts[0], texts[2], texts[3]}));
}

TEST(RequestTable, what_the_table_does_not_accept_is_refused_by_name) {
  const std::vector<std::pair<ArgumentText, std::string>> cases = {
      {{"count", {"10"}, false}, "count '10'"},
      {{"count", {"1", "2"}, false}, "count is given 2 times"},
      {{"count", {}, true}, "count needs a value"},
      {{"fast", {"yes"}, false}, "fast takes no value"},
      {{"name", {"three"}, false}, "name 'three'"},
      {{"nothing", {"1"}, false}, "nothing: there is no such argument"},
      {{"input", {"/nonexistent/in"}, false}, "input '/nonexistent/in': no such file"}};
  for (const auto& [text, message] : cases) {
    Sample sample;
    const Status status = set_given(sample_fields(), std::span(&text, 1), sample);
    ASSERT_FALSE(status) << text.name;
    EXPECT_EQ(status.error().kind(), ErrorKind::invalid_argument);
    EXPECT_NE(status.error().message().find(message), std::string::npos) << status.error().message();
  }
}

// Only the call that writes knows whether it may.
TEST(RequestTable, an_output_that_exists_is_no_fault_of_the_request) {
  const TemporaryFolder folder;
  folder.put("there", "");
  const ArgumentText text{"output", {(folder / "there").string()}, false};
  Sample sample;
  EXPECT_TRUE(set_given(sample_fields(), std::span(&text, 1), sample));
  EXPECT_EQ(sample.output.value(), (folder / "there").string());
}

TEST(RequestTable, a_value_that_is_not_given_stays_so_on_its_way_through_the_table) {
  Sample from;
  ASSERT_TRUE(fill_in_defaults(sample_fields(), from));
  from.name = "one";
  Sample to;
  for (const RequestField<Sample>& field : sample_fields()) field.set(to, field.values(from), field.given(from));
  for (const RequestField<Sample>& field : sample_fields()) {
    EXPECT_EQ(field.values(to), field.values(from)) << field.argument.name;
    EXPECT_EQ(field.given(to), field.given(from)) << field.argument.name;
  }
}

}  // namespace
}  // namespace cingulum::request_table_tests
