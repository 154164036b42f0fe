#include "cli/program.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "cli/completion.hpp"
#include "cli/docs.hpp"
#include "cli/help.hpp"
#include "cli/verbs.hpp"

namespace cingulum {
namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int code;
  std::string out;
  std::string talk;
};

Outcome run(const Words& words, std::vector<Verb> verbs = all_verbs(),
            Settings::Variables variables = {{"HOME", "/h"}}) {
  Outcome outcome{};
  TalkStream stream([&](std::string_view text) { outcome.talk += text; }, false, [] { return std::size_t{80}; });
  Log log(stream);
  Program program{.verbs = std::move(verbs),
                  .settings = Settings::from_variables(std::move(variables)),
                  .output = [&](std::string_view text) { outcome.out += text; },
                  .log = log};
  outcome.code = run_program(program, words);
  return outcome;
}

template <ErrorKind kind>
Status fail_with(const ParsedArguments&, VerbContext& context) {
  context.print("partial result\n");
  return fail(kind, "it went wrong");
}

Verb verb_that(Status (*body)(const ParsedArguments&, VerbContext&)) {
  return {.name = "demo", .summary = "demonstrate", .description = "", .run = body};
}

TEST(Program, ends_with_0_1_2_or_130_by_what_happened) {
  const auto code = [](Status (*body)(const ParsedArguments&, VerbContext&)) {
    return run({"demo"}, {verb_that(body)}).code;
  };
  EXPECT_EQ(code([](const ParsedArguments&, VerbContext&) -> Status { return {}; }), 0);
  EXPECT_EQ(code(fail_with<ErrorKind::io>), 1);
  EXPECT_EQ(code(fail_with<ErrorKind::unavailable>), 1);
  EXPECT_EQ(code(fail_with<ErrorKind::invalid_argument>), 2);
  EXPECT_EQ(code(fail_with<ErrorKind::interrupted>), 130);
  EXPECT_EQ(code([](const ParsedArguments&, VerbContext&) -> Status { throw std::bad_alloc(); }), 1);
  EXPECT_EQ(code([](const ParsedArguments&, VerbContext&) -> Status { throw std::runtime_error("x"); }), 1);
}

TEST(Program, prints_an_error_once_with_the_verb_and_keeps_results_apart) {
  const Outcome outcome = run({"demo"}, {verb_that(fail_with<ErrorKind::io>)});
  EXPECT_EQ(outcome.out, "partial result\n");
  EXPECT_EQ(outcome.talk, "cingulum demo: it went wrong\n");
}

TEST(Program, without_words_explains_itself_on_stderr_and_is_misused) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.talk.find("Usage: cingulum VERB [options]"), std::string::npos);
}

TEST(Program, suggests_verbs_and_options) {
  EXPECT_EQ(run({"setings"}).talk, "cingulum: unknown verb 'setings'; did you mean 'settings'?\n");
  EXPECT_EQ(run({"zzz"}).talk, "cingulum: unknown verb 'zzz'; 'cingulum help' lists the verbs\n");
  EXPECT_EQ(run({"--vresion"}).talk, "cingulum: unknown option '--vresion'; did you mean '--version'?\n");
  EXPECT_EQ(run({"--json"}).talk, "cingulum: unknown option '--json'; options follow a verb, see 'cingulum --help'\n");
  EXPECT_EQ(run({"settings", "--jsn"}).talk, "cingulum settings: unknown option '--jsn'; did you mean '--json'?\n");
  for (const Words& words : {Words{"setings"}, Words{"--vresion"}, Words{"settings", "--jsn"}}) {
    EXPECT_EQ(run(words).code, 2);
    EXPECT_EQ(run(words).out, "");
  }
}

TEST(Program, gives_help_for_every_verb_whatever_else_the_words_say) {
  for (const Verb& verb : all_verbs()) {
    for (const Words& words :
         {Words{verb.name, "--help"}, Words{verb.name, "--nonsense", "-h"}, Words{"help", verb.name}}) {
      const Outcome outcome = run(words);
      EXPECT_EQ(outcome.code, 0) << verb.name;
      EXPECT_EQ(outcome.talk, "") << verb.name;
      EXPECT_NE(outcome.out.find("Usage: cingulum " + verb.name), std::string::npos) << verb.name;
    }
  }
}

TEST(Program, refuses_to_work_with_a_malformed_setting_but_explains_and_lists) {
  const Settings::Variables malformed = {{"CINGULUM_THREADS", "many"}};
  const Outcome refused =
      run({"demo"}, {verb_that([](const ParsedArguments&, VerbContext&) -> Status { return {}; })}, malformed);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.talk,
            "cingulum demo: setting CINGULUM_THREADS='many': accepted is a whole number from 1 to 4096\n");
  EXPECT_EQ(run({"help"}, all_verbs(), malformed).code, 0);
  EXPECT_EQ(run({"--version"}, all_verbs(), malformed).code, 0);
  const Outcome listed = run({"settings", "--json"}, all_verbs(), malformed);
  EXPECT_EQ(listed.code, 2);
  const auto list = nlohmann::json::parse(listed.out);
  EXPECT_EQ(list.size(), setting_list().size());
  for (const auto& entry : list) EXPECT_EQ(entry["valid"], entry["name"] != "CINGULUM_THREADS");
}

TEST(Program, warns_of_unknown_settings_unless_quiet) {
  const Settings::Variables unknown = {{"CINGULUM_THREAD", "4"}};
  EXPECT_EQ(run({"settings", "--json"}, all_verbs(), unknown).talk,
            "cingulum settings: warning: CINGULUM_THREAD is not a setting; did you mean 'CINGULUM_THREADS'?\n");
  EXPECT_EQ(run({"settings", "--json", "--quiet"}, all_verbs(), unknown).talk, "");
}

TEST(Program, passes_options_to_the_verb) {
  Verb verb = verb_that([](const ParsedArguments&, VerbContext& context) -> Status {
    CGL_TRY_ASSIGN(ThreadPool * pool, context.pool());
    context.print_format("{} {} {} {}\n", pool->threads(), context.write_options().force, context.write_options().sync,
                         static_cast<int>(context.progress_options().style));
    return {};
  });
  verb.common = {CommonOption::threads, CommonOption::force, CommonOption::progress};
  EXPECT_EQ(run({"demo", "--threads", "2", "--force", "--progress", "json"}, {verb}, {{"CINGULUM_NO_SYNC", "1"}}).out,
            "2 true false 3\n");
  EXPECT_EQ(run({"demo", "--threads", "1", "--quiet"}, {verb}).out, "1 false true 4\n");
}

TEST(Version, names_version_commit_compilers_and_backends) {
  const Outcome text = run({"--version"});
  EXPECT_EQ(text.code, 0);
  for (const std::string part : {"cingulum ", "commit: ", "build: ", "compilers: ", "backends: cpu"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
  }
  const auto json = nlohmann::json::parse(run({"--version", "--json"}).out);
  EXPECT_EQ(json["backends"][0], "cpu");
  EXPECT_TRUE(json.contains("commit"));
}

// What help, pages and completion rely on.
TEST(EveryVerb, is_declared_completely) {
  std::set<std::string> names;
  for (const Verb& verb : all_verbs()) {
    SCOPED_TRACE(verb.name);
    EXPECT_TRUE(names.insert(verb.name).second);
    EXPECT_NE(verb.run, nullptr);
    EXPECT_FALSE(verb.summary.empty() || verb.summary.ends_with('.') || verb.description.empty());
    EXPECT_FALSE(verb.examples.empty());
    for (const Example& example : verb.examples) {
      EXPECT_NE(example.command.find("cingulum " + verb.name), std::string::npos) << example.command;
      EXPECT_FALSE(example.meaning.empty());
    }
    std::set<std::string> arguments;
    std::set<char> letters;
    bool many = false;
    for (const Argument& argument : all_arguments(verb)) {
      SCOPED_TRACE(argument.name);
      EXPECT_TRUE(arguments.insert(argument.name).second) << "declared twice";
      EXPECT_TRUE(argument.letter == 0 || letters.insert(argument.letter).second) << "letter used twice";
      EXPECT_FALSE(argument.help.empty() || argument.help.ends_with('.'));
      EXPECT_EQ(argument.type == ArgumentType::choice, !argument.choices.empty());
      EXPECT_FALSE(argument.positional && many) << "nothing can follow an argument that takes all words";
      many = many || (argument.positional && argument.repeatable);
      if (argument.type == ArgumentType::file_out) {
        EXPECT_NE(std::find(verb.common.begin(), verb.common.end(), CommonOption::force), verb.common.end());
      }
    }
  }
}

TEST(Help, of_one_action_shows_what_belongs_to_it) {
  const std::vector<Verb> verbs = all_verbs();
  const Outcome stitch = run({"oct", "stitch", "--help"}, verbs);
  EXPECT_EQ(stitch.code, 0);
  for (const std::string part : {"cingulum oct stitch [options]", "--blending", "--pyramid",
                                 "places the tiles of a mosaic grid", "cingulum oct stitch mosaics"}) {
    EXPECT_NE(stitch.out.find(part), std::string::npos) << part;
  }
  for (const std::string part : {"--tissue-radius", "--confidence-high", "ACTION", "oct run", "stitch, run:"}) {
    EXPECT_EQ(stitch.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(run({"oct", "--help", "stitch"}, verbs).out, stitch.out);
  const Outcome all = run({"oct", "--help"}, verbs);
  for (const std::string part : {"--tissue-radius", "ACTION", "stitch, run: weights", "simulate: rows and columns"}) {
    EXPECT_NE(all.out.find(part), std::string::npos) << part;
  }
  // The one verb without actions whose inputs may have any name.
  EXPECT_EQ(run({"track", "stitch", "--help"}, verbs).out, run({"track", "--help"}, verbs).out);
}

// Refusing an option by its action needs every name to be one.
TEST(EveryVerb, names_actions_that_it_has) {
  for (const Verb& verb : all_verbs()) {
    std::set<std::string> actions;
    for (const Argument& argument : verb.arguments) {
      if (argument.name == action_argument) actions.insert(argument.choices.begin(), argument.choices.end());
    }
    for (const Argument& argument : verb.arguments) {
      for (const std::string& action : argument.actions) EXPECT_TRUE(actions.contains(action)) << argument.name;
    }
  }
}

TEST(Help, fits_the_width) {
  for (const Verb& verb : all_verbs()) {
    const std::string text = verb_help_text(verb, 60);
    // Commands and usage are not broken.
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      const std::string line = text.substr(begin, end - begin);
      const bool is_command = line.find("cingulum") != std::string::npos;
      EXPECT_TRUE(is_command || line.size() <= 60) << line;
      begin = end + 1;
    }
  }
}

TEST(Completion, names_every_verb_and_option_in_every_shell) {
  const std::vector<Verb> verbs = all_verbs();
  for (const std::string& script : {bash_completion(verbs), zsh_completion(verbs), fish_completion(verbs)}) {
    for (const Verb& verb : verbs) {
      if (verb.hidden) continue;
      EXPECT_NE(script.find(verb.name), std::string::npos);
      for (const Argument& argument : all_arguments(verb)) {
        EXPECT_TRUE(argument.positional || script.find(argument.name) != std::string::npos) << argument.name;
      }
    }
  }
}

TEST(Docs, has_a_page_for_every_verb_that_is_not_hidden) {
  const std::vector<Verb> verbs = all_verbs();
  std::set<std::string> names;
  for (const Page& page : command_pages(verbs)) names.insert(page.name);
  EXPECT_TRUE(names.contains("README.md"));
  for (const Verb& verb : verbs) EXPECT_EQ(names.contains(verb.name + ".md"), !verb.hidden) << verb.name;
}

TEST(Program, spells_arguments_of_errors_and_of_the_log_as_options) {
  const Outcome outcome =
      run({"demo"}, {verb_that([](const ParsedArguments&, VerbContext& context) -> Status {
            context.log().print(LogLevel::warning, "no {} given", argument_name("bvec_frame"));
            return add_context(Status(fail_argument("max_angle", "{} 91: at most 90", argument_name("max_angle"))),
                               "using {}", argument_name("sh_order"));
          })});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.talk,
      "cingulum demo: warning: no --bvec-frame given\ncingulum demo: using --sh-order: --max-angle 91: at most 90\n");
}

}  // namespace
}  // namespace cingulum
