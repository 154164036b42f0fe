#include "cli/command_line.hpp"

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using Words = std::vector<std::string>;

Verb demonstration() {
  Verb verb{.name = "demo", .summary = "", .description = ""};
  verb.arguments = {{.name = "inputs", .metavar = "INPUT", .positional = true, .repeatable = true},
                    {.name = "out", .help = "the output", .metavar = "FILE", .letter = 'o'},
                    {.name = "step-size", .type = ArgumentType::length, .default_text = "0.5vox"},
                    {.name = "offset", .type = ArgumentType::real},
                    {.name = "label", .repeatable = true},
                    {.name = "dry-run", .type = ArgumentType::flag, .letter = 'n'}};
  verb.common = {CommonOption::device, CommonOption::threads,  CommonOption::force,
                 CommonOption::json,   CommonOption::progress, CommonOption::seed};
  return verb;
}

ParsedArguments parsed(const Verb& verb, const Words& words) {
  auto result = parse_command_line(verb, words);
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : ParsedArguments();
}

std::string error_of(const Verb& verb, const Words& words) {
  const auto result = parse_command_line(verb, words);
  if (result) return "(accepted)";
  EXPECT_EQ(result.error().kind(), ErrorKind::invalid_argument);
  return result.error().message();
}

TEST(CommandLine, values_follow_by_blank_or_equals_sign_and_options_stand_anywhere) {
  const ParsedArguments arguments = parsed(
      demonstration(), {"a", "--out", "x.trx", "b", "--step-size=1mm", "-n", "--label", "l1", "--label=l2", "c"});
  EXPECT_EQ(arguments.texts("inputs"), (Words{"a", "b", "c"}));
  EXPECT_EQ(arguments.text("out"), "x.trx");
  EXPECT_EQ(arguments.length("step-size"), (Length{1, LengthUnit::millimetre}));
  EXPECT_EQ(arguments.texts("label"), (Words{"l1", "l2"}));
  EXPECT_TRUE(arguments.flag("dry-run"));
}

TEST(CommandLine, underscores_stand_for_dashes) {
  const ParsedArguments arguments = parsed(demonstration(), {"--step_size=1mm", "--dry_run", "a_b"});
  EXPECT_EQ(arguments.length("step-size"), (Length{1, LengthUnit::millimetre}));
  EXPECT_TRUE(arguments.flag("dry-run"));
  EXPECT_EQ(arguments.texts("inputs"), (Words{"a_b"}));
}

TEST(CommandLine, an_option_of_another_action_is_refused) {
  Verb verb{.name = "demo", .summary = "", .description = "`draw` and `sum X`.\n\nOnly `sum`."};
  verb.arguments = {{.name = "action", .type = ArgumentType::choice, .choices = {"draw", "sum"}, .positional = true},
                    {.name = "width", .default_text = "3", .actions = {"draw"}},
                    {.name = "fast", .type = ArgumentType::flag, .actions = {"sum"}},
                    {.name = "both", .actions = {"draw", "sum"}},
                    {.name = "any"}};
  EXPECT_EQ(error_of(verb, {"sum", "--width", "3"}),
            "--width is no option of 'cingulum demo sum' but of 'draw'; see 'cingulum demo sum --help'");
  EXPECT_EQ(error_of(verb, {"--fast", "draw"}),
            "--fast is no option of 'cingulum demo draw' but of 'sum'; see 'cingulum demo draw --help'");
  for (const std::string action : {"draw", "sum"}) {
    EXPECT_EQ(parsed(verb, {action, "--both=1", "--any=2"}).text("width"), "3") << "a default is no reason";
  }
  EXPECT_TRUE(parsed(verb, {"sum", "--fast"}).flag("fast"));
}

// And leave the words that are still needed.
TEST(CommandLine, an_option_that_takes_several_ends_at_the_next_option) {
  Verb verb{.name = "demo", .summary = "", .description = ""};
  verb.arguments = {{.name = "from", .metavar = "FROM", .positional = true, .required = true},
                    {.name = "to", .metavar = "TO", .positional = true, .required = true},
                    {.name = "label", .repeatable = true, .takes_several = true},
                    {.name = "dry-run", .type = ArgumentType::flag}};
  EXPECT_EQ(parsed(verb, {"a", "b", "--label", "1", "2", "--dry-run", "--label", "3"}).texts("label"),
            (Words{"1", "2", "3"}));
  const ParsedArguments before = parsed(verb, {"--label", "1", "2", "a", "b"});
  EXPECT_EQ(before.texts("label"), (Words{"1", "2"}));
  EXPECT_EQ(before.text("to"), "b");
  EXPECT_NE(error_of(verb, {"a", "--label"}).find("--label needs a value"), std::string::npos);
  EXPECT_NE(error_of(verb, {"a"}).find("TO"), std::string::npos);
}

TEST(CommandLine, defaults_stand_in_for_what_is_not_given) {
  const ParsedArguments arguments = parsed(demonstration(), {});
  EXPECT_EQ(arguments.length("step-size"), (Length{0.5, LengthUnit::voxel}));
  EXPECT_FALSE(arguments.given("step-size"));
  EXPECT_TRUE(arguments.has("step-size"));
  EXPECT_FALSE(arguments.has("out"));
  EXPECT_FALSE(arguments.flag("dry-run"));
  EXPECT_EQ(arguments.key("seed"), 0U);
}

TEST(CommandLine, negative_numbers_brackets_and_odd_texts_are_values) {
  EXPECT_EQ(parsed(demonstration(), {"--offset", "-2.5"}).real("offset"), -2.5);
  EXPECT_EQ(parsed(demonstration(), {"--offset=-2.5"}).real("offset"), -2.5);
  EXPECT_EQ(parsed(demonstration(), {"--label", "[a,b]", "--label", "a b"}).texts("label"), (Words{"[a,b]", "a b"}));
  EXPECT_EQ(parsed(demonstration(), {"--", "--out", "-x"}).texts("inputs"), (Words{"--out", "-x"}));
  EXPECT_EQ(parsed(demonstration(), {"-o", "x"}).text("out"), "x");
}

TEST(CommandLine, flags_may_be_repeated_and_take_no_value) {
  EXPECT_TRUE(parsed(demonstration(), {"--force", "--force"}).flag("force"));
  EXPECT_EQ(error_of(demonstration(), {"--force=3"}), "--force takes no value");
  EXPECT_EQ(error_of(demonstration(), {"--force=maybe"}), "--force takes no value");
}

TEST(CommandLine, unknown_options_suggest_the_nearest) {
  EXPECT_EQ(error_of(demonstration(), {"--thraeds", "4"}), "unknown option '--thraeds'; did you mean '--threads'?");
  EXPECT_EQ(error_of(demonstration(), {"--step=1"}), "unknown option '--step'; did you mean '--step-size'?");
  EXPECT_EQ(error_of(demonstration(), {"-force"}), "unknown option '-force'; did you mean '--force'?");
  EXPECT_EQ(error_of(demonstration(), {"--zzzzzz"}), "unknown option '--zzzzzz'; see 'cingulum demo --help'");
}

TEST(CommandLine, missing_and_superfluous_words_are_named) {
  Verb verb = demonstration();
  verb.arguments[0].repeatable = false;
  verb.arguments[0].required = true;
  verb.arguments[1].required = true;
  EXPECT_EQ(error_of(verb, {"--out", "x"}), "INPUT is missing; see 'cingulum demo --help'");
  EXPECT_EQ(error_of(verb, {"a"}), "--out FILE is missing; see 'cingulum demo --help'");
  EXPECT_EQ(error_of(verb, {"a", "b", "--out", "x"}), "unexpected argument 'b'; see 'cingulum demo --help'");
  EXPECT_EQ(error_of(verb, {"a", "--out", "x", "--", "-b"}), "unexpected argument '-b'; see 'cingulum demo --help'");
  EXPECT_EQ(parsed(verb, {"--out", "x", "--", "-a"}).text("inputs"), "-a");
  EXPECT_EQ(error_of(verb, {"a", "--out"}), "--out needs a value (FILE)");
  EXPECT_EQ(error_of(verb, {"a", "--out", "x", "--out", "y"}), "--out is given 2 times; it takes one value");
}

TEST(CommandLine, values_are_checked_with_option_value_and_accepted_range) {
  EXPECT_EQ(error_of(demonstration(), {"--threads", "0"}), "--threads '0': accepted is a whole number from 1 to 4096");
  EXPECT_EQ(error_of(demonstration(), {"--progress", "jsn"}),
            "--progress 'jsn': accepted is auto, bar, lines, json or none; did you mean 'json'?");
  EXPECT_EQ(error_of(demonstration(), {"--quiet", "--verbose"}), "--quiet and --verbose contradict each other");
}

TEST(CommandLine, inputs_must_exist_and_a_near_name_is_suggested) {
  const TemporaryFolder folder;
  folder.put("fod.nii.gz", "x");
  Verb verb = demonstration();
  verb.arguments[0].type = ArgumentType::file_in;
  EXPECT_TRUE(parse_command_line(verb, Words{folder / "fod.nii.gz"}));
  EXPECT_TRUE(parse_command_line(verb, Words{folder.path()}));
  EXPECT_EQ(error_of(verb, {folder / "fdo.nii.gz"}), "INPUT '" + (folder / "fdo.nii.gz").native() +
                                                         "': no such file; did you mean '" +
                                                         (folder / "fod.nii.gz").native() + "'?");
  EXPECT_EQ(error_of(verb, {"/nonexistent/a/b"}), "INPUT '/nonexistent/a/b': no such file");
}

TEST(CommandLine, outputs_that_exist_need_force) {
  const TemporaryFolder folder;
  folder.put("a.trx", "x");
  const std::string path = folder / "a.trx";
  Verb verb = demonstration();
  verb.arguments[1].type = ArgumentType::file_out;
  EXPECT_EQ(error_of(verb, {"--out", path}), "--out: writing " + path + ": it exists; use force to replace it");
  EXPECT_TRUE(parse_command_line(verb, Words{"--out", path, "--force"}));
  EXPECT_TRUE(parse_command_line(verb, Words{"--out", folder / "b.trx"}));
  EXPECT_EQ(error_of(verb, {"--out", folder / "no/b.trx"}), "--out: writing " + (folder / "no/b.trx").native() +
                                                                ": the folder " + (folder / "no").native() +
                                                                " does not exist");
}

TEST(NamedArguments, have_the_values_and_the_checks_of_words) {
  const Verb verb = demonstration();
  const std::vector<ArgumentText> named = {
      {"inputs", {"-a", "b"}}, {"step-size", {"1mm"}}, {"label", {"l1", "--out"}}, {"dry-run", {}, true}};
  const auto arguments = parse_named_arguments(verb, named);
  ASSERT_TRUE(arguments) << arguments.error().message();
  EXPECT_EQ(arguments->texts("inputs"), (Words{"-a", "b"})) << "no text is taken for an option";
  EXPECT_EQ(arguments->length("step-size"), (Length{1, LengthUnit::millimetre}));
  EXPECT_EQ(arguments->texts("label"), (Words{"l1", "--out"}));
  EXPECT_TRUE(arguments->flag("dry-run"));
  EXPECT_FALSE(arguments->has("out"));

  const auto refusal = [&](ArgumentText one) {
    const auto result = parse_named_arguments(verb, std::span(&one, 1));
    return result ? "(accepted)" : result.error().message();
  };
  EXPECT_NE(refusal({"step-size", {"near"}}).find("near"), std::string::npos);
  EXPECT_NE(refusal({"stepsize", {"1"}}).find("there is no such argument"), std::string::npos);
  EXPECT_NE(refusal({"dry-run", {"yes"}}).find("takes no value"), std::string::npos);
  EXPECT_NE(refusal({"out", {}, true}).find("needs a value"), std::string::npos);
}

TEST(CommonValues, options_win_over_settings_and_settings_over_defaults) {
  const Settings settings =
      Settings::from_variables({{"CINGULUM_DEVICE", "webgpu"}, {"CINGULUM_THREADS", "3"}, {"HOME", "/h"}});
  const auto from_settings = common_values(demonstration(), parsed(demonstration(), {}), settings);
  ASSERT_TRUE(from_settings);
  EXPECT_EQ(from_settings->devices, Words{"webgpu"});
  EXPECT_EQ(from_settings->threads, 3);
  EXPECT_EQ(from_settings->progress, ProgressStyle::automatic);
  const auto from_options =
      common_values(demonstration(),
                    parsed(demonstration(), {"--device", "cuda:1,cpu", "--threads", "5", "--seed", "0x10", "--progress",
                                             "json", "--json", "--force", "--quiet"}),
                    settings);
  ASSERT_TRUE(from_options);
  EXPECT_EQ(from_options->devices, (Words{"cuda:1", "cpu"}));
  EXPECT_EQ(from_options->threads, 5);
  EXPECT_EQ(from_options->seed, 16U);
  EXPECT_EQ(from_options->progress, ProgressStyle::json);
  EXPECT_TRUE(from_options->json && from_options->force && from_options->quiet);
}

TEST(AsksForHelp, anywhere_before_a_double_dash) {
  EXPECT_TRUE(asks_for_help(Words{"a", "--help"}));
  EXPECT_TRUE(asks_for_help(Words{"-h"}));
  EXPECT_FALSE(asks_for_help(Words{"--", "--help"}));
  EXPECT_FALSE(asks_for_help(Words{"help"}));
}

}  // namespace
}  // namespace cingulum
