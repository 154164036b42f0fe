#include "cli/command_line.hpp"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/edit_distance.hpp"
#include "runs/argument_value.hpp"

namespace cingulum {
namespace {

// The words of one argument as they were given; a flag has one empty word for each time.
struct GivenWords {
  Argument argument;
  std::vector<std::string> words;
};

tl::unexpected<Error> misuse(std::string message) {
  return tl::make_unexpected(Error(ErrorKind::invalid_argument, std::move(message)));
}

std::string see_help(const Verb& verb) {
  return fmt::format("see 'cingulum {} --help'", verb.name);
}

// "-o,--out" for CLI11; a positional argument is its bare name. Options of other programs have underscores (of BIDS
// Apps
// --participant_label): both are taken.
std::string cli11_name(const Argument& argument) {
  if (argument.positional) return argument.name;
  std::string names = "--" + argument.name;
  if (argument.letter != 0) names = fmt::format("-{},{}", argument.letter, names);
  std::string underscored = argument.name;
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  return underscored == argument.name ? names : names + ",--" + underscored;
}

// `extras` are the words that no argument took, with the "--" among them, if one was given.
Status check_extras(const Verb& verb, const std::vector<GivenWords>& given, const std::vector<std::string>& extras) {
  const auto looks_like_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto mark = std::find(extras.begin(), extras.end(), "--");
  const auto option = std::find_if(extras.begin(), mark, looks_like_option);
  if (option == mark) {
    const auto word = extras.begin() != mark ? extras.begin() : mark == extras.end() ? mark : mark + 1;
    if (word == extras.end()) return {};
    return misuse(fmt::format("unexpected argument '{}'; {}", *word, see_help(verb)));
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> names;
  for (const GivenWords& entry : given) {
    if (!entry.argument.positional) names.push_back("--" + entry.argument.name);
  }
  // A single dash before a whole word is a habit from other programs.
  const std::string sought = name.starts_with("--") ? name : "-" + name;
  const std::string suggestion = did_you_mean(sought, names);
  return misuse(fmt::format("unknown option '{}'{}", name, suggestion.empty() ? "; " + see_help(verb) : suggestion));
}

// CLI11 speaks of missing values in its own words: "--out: 1 required TEXT missing".
tl::unexpected<Error> translate(const Verb& verb, const std::vector<GivenWords>& given, const CLI::ParseError& error) {
  const std::string text = error.what();
  for (const GivenWords& entry : given) {
    const std::string name = shown_name(entry.argument);
    if (entry.argument.positional || text.find(name) == std::string::npos) continue;
    if (entry.argument.type == ArgumentType::flag) return misuse(fmt::format("{} takes no value", name));
    return misuse(fmt::format("{} needs a value ({})", name, shown_metavar(entry.argument)));
  }
  return misuse(fmt::format("{}; {}", text, see_help(verb)));
}

Status split_words(const Verb& verb, std::span<const std::string> words, std::vector<GivenWords>& given) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> flags(given.size(), nullptr);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Argument& argument = given[i].argument;
    if (argument.type == ArgumentType::flag) {
      flags[i] = app.add_flag(cli11_name(argument));
      continue;
    }
    const bool takes_all = (argument.positional && argument.repeatable) || argument.takes_several;
    app.add_option(cli11_name(argument), given[i].words)
        ->expected(takes_all ? -1 : 1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(takes_all)
        // So that an option that takes several leaves the words that these need.
        ->required(argument.positional && argument.required);
  }
  try {
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::RequiredError&) {
    // All words were given out before; what is missing is said below, in our words.
  } catch (const CLI::ParseError& error) {
    return translate(verb, given, error);
  }
  CGL_TRY(check_extras(verb, given, app.remaining()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (flags[i] == nullptr) continue;
    // CLI11 lets a flag carry a value: --json=3.
    const auto& results = flags[i]->results();
    if (!std::all_of(results.begin(), results.end(), [](const std::string& result) { return result == "true"; })) {
      return misuse(fmt::format("{} takes no value", shown_name(given[i].argument)));
    }
    given[i].words.resize(results.size());
  }
  return {};
}

Result<std::vector<ParsedArguments::Value>> parse_words(const Verb& verb, const GivenWords& given) {
  const Argument& argument = given.argument;
  if (argument.type == ArgumentType::flag) return std::vector<ParsedArguments::Value>{!given.words.empty()};
  if (given.words.empty() && argument.required) {
    return misuse(fmt::format("{} is missing; {}",
                              argument.positional ? shown_name(argument)
                                                  : fmt::format("{} {}", shown_name(argument), shown_metavar(argument)),
                              see_help(verb)));
  }
  CGL_TRY_ASSIGN(auto values, values_of_texts(argument, given.words));
  if (values.empty() && !argument.default_text.empty()) {
    CGL_TRY_ASSIGN(auto value, parse_value(argument, argument.default_text));
    values.push_back(std::move(value));
  }
  return values;
}

// An option of another action is refused rather than left unread.
Status check_action(const Verb& verb, const ParsedArguments& parsed) {
  for (const Argument& argument : verb.arguments) {
    if (argument.actions.empty() || !parsed.given(argument.name)) continue;
    const std::string& action = parsed.text(action_argument);
    if (std::find(argument.actions.begin(), argument.actions.end(), action) != argument.actions.end()) continue;
    return misuse(fmt::format("{} is no option of 'cingulum {} {}' but of '{}'; see 'cingulum {} {} --help'",
                              shown_name(argument), verb.name, action, fmt::join(argument.actions, "', '"), verb.name,
                              action));
  }
  return {};
}

std::vector<GivenWords> nothing_given(const Verb& verb) {
  std::vector<GivenWords> given;
  for (Argument& argument : all_arguments(verb)) given.push_back({std::move(argument), {}});
  return given;
}

Result<ParsedArguments> check_given(const Verb& verb, const std::vector<GivenWords>& given) {
  ParsedArguments parsed;
  for (const GivenWords& entry : given) {
    CGL_TRY_ASSIGN(auto values, parse_words(verb, entry));
    parsed.set(entry.argument.name, std::move(values), !entry.words.empty());
  }
  CGL_TRY(check_action(verb, parsed));
  if (parsed.flag("quiet") && parsed.flag("verbose")) return misuse("--quiet and --verbose contradict each other");
  const bool force = parsed.has("force") && parsed.flag("force");
  for (const GivenWords& entry : given) CGL_TRY(check_named_files(entry.argument, entry.words, force));
  return parsed;
}

Status take_named(std::span<const ArgumentText> named, std::vector<GivenWords>& given) {
  for (const ArgumentText& one : named) {
    const auto entry = std::find_if(given.begin(), given.end(),
                                    [&](const GivenWords& each) { return each.argument.name == one.name; });
    CGL_TRY(check_named_argument(entry == given.end() ? nullptr : &entry->argument, one));
    entry->words = one.is_flag ? std::vector<std::string>(1) : one.texts;
  }
  return {};
}

ProgressStyle progress_style(const std::string& name) {
  if (name == "bar") return ProgressStyle::bar;
  if (name == "lines") return ProgressStyle::lines;
  if (name == "json") return ProgressStyle::json;
  if (name == "none") return ProgressStyle::silent;
  return ProgressStyle::automatic;
}

}  // namespace

bool asks_for_help(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

Result<ParsedArguments> parse_command_line(const Verb& verb, std::span<const std::string> words) {
  return catch_out_of_memory([&]() -> Result<ParsedArguments> {
    std::vector<GivenWords> given = nothing_given(verb);
    CGL_TRY(split_words(verb, words, given));
    return check_given(verb, given);
  });
}

Result<ParsedArguments> parse_named_arguments(const Verb& verb, std::span<const ArgumentText> named) {
  return catch_out_of_memory([&]() -> Result<ParsedArguments> {
    std::vector<GivenWords> given = nothing_given(verb);
    CGL_TRY(take_named(named, given));
    return check_given(verb, given);
  });
}

Result<CommonValues> common_values(const Verb& verb, const ParsedArguments& arguments, const Settings& settings) {
  return catch_out_of_memory([&]() -> Result<CommonValues> {
    const auto takes = [&](CommonOption option) {
      return std::find(verb.common.begin(), verb.common.end(), option) != verb.common.end();
    };
    CommonValues values;
    values.quiet = arguments.flag("quiet");
    values.verbose = arguments.flag("verbose");
    if (takes(CommonOption::device)) {
      if (arguments.given("device")) {
        values.devices = arguments.devices("device");
      } else {
        CGL_TRY_ASSIGN(values.devices, settings.devices());
      }
    }
    if (arguments.given("threads")) {
      values.threads = static_cast<int>(arguments.integer("threads"));
    } else if (verb.needs_settings) {
      CGL_TRY_ASSIGN(values.threads, settings.threads());
    }
    if (takes(CommonOption::force)) values.force = arguments.flag("force");
    if (takes(CommonOption::json)) values.json = arguments.flag("json");
    if (takes(CommonOption::progress)) values.progress = progress_style(arguments.text("progress"));
    if (takes(CommonOption::seed)) values.seed = arguments.key("seed");
    return values;
  });
}

}  // namespace cingulum
