#include "cli/help.hpp"

#include <algorithm>
#include <utility>

#include "base/edit_distance.hpp"
#include "base/interrupt.hpp"
#include "cli/text_layout.hpp"
#include "runs/argument_value.hpp"

namespace cingulum {
namespace {

// Lines longer than this are hard to read, however wide the terminal is.
constexpr std::size_t widest_text = 100;

// "threads of the CPU (a whole number from 1 to 4096; default 4)"
std::string explained(const Argument& argument) {
  std::string facts;
  const auto add = [&](const std::string& fact) {
    if (!fact.empty()) facts += (facts.empty() ? "" : "; ") + fact;
  };
  // Files, devices and keys are explained by their help.
  const bool shows_accepted = argument.type != ArgumentType::file_in && argument.type != ArgumentType::file_out &&
                              argument.type != ArgumentType::device_list;
  if (shows_accepted) add(accepted_text(argument));
  if (argument.required && !argument.positional) add("required");
  if (argument.repeatable && !argument.positional) add("may be given several times");
  if (!argument.default_text.empty()) add("default " + argument.default_text);
  if (!argument.default_note.empty()) add("default " + argument.default_note);
  const std::string help = help_with_actions(argument);
  return facts.empty() ? help : fmt::format("{} ({})", help, facts);
}

void add_section(std::string& text, std::string_view title, const std::vector<Argument>& arguments, std::size_t width) {
  if (arguments.empty()) return;
  std::vector<std::pair<std::string, std::string>> items;
  for (const Argument& argument : arguments) items.emplace_back(option_label(argument), explained(argument));
  text += fmt::format("\n{}:\n{}", title, definition_list(items, width));
}

// Those that name the action in quotes: `stitch` or `stitch MOSAIC`.
std::string paragraphs_about(std::string_view description, const std::string& action) {
  std::string found;
  while (!description.empty()) {
    const std::size_t end = std::min(description.find("\n\n"), description.size());
    const std::string_view paragraph = description.substr(0, end);
    if (paragraph.find("`" + action + " ") != std::string_view::npos ||
        paragraph.find("`" + action + "`") != std::string_view::npos) {
      found += found.empty() ? "" : "\n\n";
      found += paragraph;
    }
    description.remove_prefix(std::min(end + 2, description.size()));
  }
  return found;
}

Status run_help(const ParsedArguments& arguments, VerbContext& context) {
  if (!arguments.has("verb")) {
    context.print(overview_text(context.verbs(), context.output_width()));
    return {};
  }
  CGL_TRY_ASSIGN(const Verb* verb, find_verb(context.verbs(), arguments.text("verb")));
  context.print(verb_help_text(*verb, context.output_width()));
  return {};
}

}  // namespace

const std::vector<ExitCode>& exit_codes() {
  static const std::vector<ExitCode> codes = {
      {0, "done"},
      {1, "failed: the message on stderr says why"},
      {2, "misused: the command line or a setting has to be written differently"},
      {interrupted_exit_code, "interrupted by Ctrl-C or a request to end"}};
  return codes;
}

std::string option_label(const Argument& argument) {
  if (argument.positional) return shown_name(argument);
  std::string label =
      argument.letter == 0 ? "--" + argument.name : fmt::format("-{}, --{}", argument.letter, argument.name);
  if (const std::string metavar = shown_metavar(argument); !metavar.empty()) label += " " + metavar;
  return label;
}

std::string usage_line(const Verb& verb) {
  std::string line = "cingulum " + verb.name;
  for (const Argument& argument : verb.arguments) {
    if (!argument.positional && argument.required) line += fmt::format(" {}", option_label(argument));
  }
  line += " [options]";
  for (const Argument& argument : verb.arguments) {
    if (!argument.positional) continue;
    const std::string name = shown_name(argument) + (argument.repeatable ? "..." : "");
    line += argument.required ? " " + name : fmt::format(" [{}]", name);
  }
  return line;
}

std::string overview_text(const std::vector<Verb>& verbs, std::size_t width) {
  width = std::min(width, widest_text);
  std::string text = wrap_text("cingulum: brain-fibre imaging on any GPU, and on none", width);
  text += "\nUsage: cingulum VERB [options]\n\nVerbs:\n";
  std::vector<std::pair<std::string, std::string>> items;
  for (const Verb& verb : verbs) {
    if (!verb.hidden) items.emplace_back(verb.name, verb.summary);
  }
  text += definition_list(items, width);
  text += "\nOptions:\n";
  text += definition_list({{"-h, --help", "print this help; behind a verb, the help of that verb"},
                           {"--version", "print version, commit, compilers and backends (with --json for programs)"}},
                          width);
  text += "\nExit codes:\n";
  items.clear();
  for (const ExitCode& exit : exit_codes()) items.emplace_back(fmt::format("{}", exit.code), std::string(exit.meaning));
  text += definition_list(items, width);
  return text;
}

std::string verb_help_text(const Verb& verb, std::size_t width) {
  width = std::min(width, widest_text);
  std::string text = wrap_text(fmt::format("cingulum {}: {}", verb.name, verb.summary), width);
  text += fmt::format("\nUsage: {}\n", usage_line(verb));
  if (!verb.description.empty()) text += "\n" + wrap_text(verb.description, width);

  std::vector<Argument> positional;
  std::vector<Argument> options;
  for (const Argument& argument : verb.arguments) (argument.positional ? positional : options).push_back(argument);
  const std::vector<Argument> all = all_arguments(verb);
  const std::vector<Argument> common(all.begin() + static_cast<std::ptrdiff_t>(verb.arguments.size()), all.end());
  add_section(text, "Arguments", positional, width);
  add_section(text, "Options", options, width);
  add_section(text, "Common options", common, width);

  if (!verb.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : verb.examples) {
    text += fmt::format("  {}\n", example.command) + wrap_text(example.meaning, width, 6);
  }
  if (!verb.references.empty()) text += "\nReferences:\n";
  for (const std::string& reference : verb.references) text += wrap_text(reference, width, 2);
  return text;
}

Verb verb_of_action(const Verb& verb, std::span<const std::string> words) {
  const auto declared = std::find_if(verb.arguments.begin(), verb.arguments.end(),
                                     [](const Argument& argument) { return argument.name == action_argument; });
  if (declared == verb.arguments.end()) return verb;
  const auto contains = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  const auto named = std::find_if(words.begin(), words.end(),
                                  [&](const std::string& word) { return contains(declared->choices, word); });
  if (named == words.end()) return verb;
  Verb part = verb;
  part.name = fmt::format("{} {}", verb.name, *named);
  part.arguments.clear();
  for (Argument argument : verb.arguments) {
    if (argument.name == action_argument) continue;
    if (!argument.actions.empty() && !contains(argument.actions, *named)) continue;
    argument.actions.clear();
    part.arguments.push_back(std::move(argument));
  }
  part.description = paragraphs_about(verb.description, *named);
  const std::string beginning = fmt::format("cingulum {} ", part.name);
  std::erase_if(part.examples, [&](const Example& example) { return !example.command.starts_with(beginning); });
  return part;
}

Result<const Verb*> find_verb(const std::vector<Verb>& verbs, std::string_view name) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) {
    if (verb.name == name) return &verb;
    if (!verb.hidden) names.push_back(verb.name);
  }
  const std::string suggestion = did_you_mean(name, names);
  return fail(ErrorKind::invalid_argument, "unknown verb '{}'{}", name,
              suggestion.empty() ? "; 'cingulum help' lists the verbs" : suggestion);
}

Verb help_verb() {
  return {
      .name = "help",
      .summary = "print the list of verbs, or the help of one",
      .description = "The same as 'cingulum --help' and 'cingulum VERB --help'.",
      .arguments = {{.name = "verb", .help = "the verb to explain", .metavar = "VERB", .positional = true}},
      .examples = {{"cingulum help settings", "explain the verb 'settings'"}},
      .needs_settings = false,
      .run = run_help,
  };
}

}  // namespace cingulum
