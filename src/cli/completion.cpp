#include "cli/completion.hpp"

#include "runs/argument_value.hpp"

namespace cingulum {

Verb completion_verb();

namespace {

// What may stand where an argument's value is expected.
struct Completed {
  enum class Kind { nothing, words, files } kind = Kind::nothing;
  std::vector<std::string> words = {};
};

std::vector<std::string> verb_names(const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) {
    if (!verb.hidden) names.push_back(verb.name);
  }
  return names;
}

Completed completed_by(const Argument& argument, const std::vector<Verb>& verbs) {
  switch (argument.type) {
    case ArgumentType::choice: return {Completed::Kind::words, argument.choices};
    case ArgumentType::device_list: return {Completed::Kind::words, {"auto", "cpu", "cuda", "webgpu", "metal"}};
    case ArgumentType::file_in:
    case ArgumentType::file_out: return {Completed::Kind::files};
    case ArgumentType::text:
      if (argument.metavar == "VERB") return {Completed::Kind::words, verb_names(verbs)};
      return {};
    default: return {};
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// A backslash before each of `special` and before each backslash.
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || special.find(c) != std::string_view::npos) result.push_back('\\');
    result.push_back(c);
  }
  return result;
}

// Inside '...' of a POSIX shell.
std::string single_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result.push_back(c);
    }
  }
  return result + "'";
}

std::string bash_reply(const Completed& completed) {
  switch (completed.kind) {
    case Completed::Kind::words: return fmt::format("_cingulum_words '{}'", joined(completed.words));
    case Completed::Kind::files: return "_cingulum_files";
    case Completed::Kind::nothing: return ":";
  }
  return ":";
}

std::string bash_verb(const Verb& verb, const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  std::string values;
  std::string positional = ":";
  for (const Argument& argument : all_arguments(verb)) {
    if (argument.positional) {
      positional = bash_reply(completed_by(argument, verbs));
      continue;
    }
    names.push_back("--" + argument.name);
    if (argument.type == ArgumentType::flag) continue;
    const std::string pattern =
        argument.letter == 0 ? names.back() : fmt::format("-{}|{}", argument.letter, names.back());
    values += fmt::format("        {}) {}; return ;;\n", pattern, bash_reply(completed_by(argument, verbs)));
  }
  if (!values.empty()) values = fmt::format("      case \"$previous\" in\n{}      esac\n", values);
  return fmt::format(
      "    {})\n{}      case \"$word\" in\n        -*) _cingulum_words '{}' ;;\n        *) {} ;;\n      esac ;;\n",
      verb.name, values, joined(names), positional);
}

// One entry of zsh's _arguments: '--out[help]:FILE:_files'
std::string zsh_argument(const Argument& argument, const std::vector<Verb>& verbs) {
  std::string action;
  const Completed completed = completed_by(argument, verbs);
  if (completed.kind == Completed::Kind::words) action = fmt::format("({})", joined(completed.words));
  if (completed.kind == Completed::Kind::files) action = "_files";
  const std::string value = fmt::format(":{}:{}", escaped(shown_metavar(argument), ":"), action);
  if (argument.positional) return single_quoted((argument.repeatable ? "*" : "") + value);
  const std::string help = fmt::format("[{}]", escaped(help_with_actions(argument), "[]:"));
  const std::string repeat = argument.repeatable ? "*" : "";
  return single_quoted(repeat + "--" + argument.name + help + (argument.type == ArgumentType::flag ? "" : value));
}

std::string fish_argument(const Verb& verb, const Argument& argument, const std::vector<Verb>& verbs) {
  const Completed completed = completed_by(argument, verbs);
  std::string line = fmt::format("complete -c cingulum -n '__fish_seen_subcommand_from {}'", verb.name);
  if (!argument.positional) {
    line += " -l " + argument.name;
    if (argument.letter != 0) line += fmt::format(" -s {}", argument.letter);
    if (argument.type != ArgumentType::flag) line += " -r";
  }
  if (completed.kind == Completed::Kind::words) line += fmt::format(" -a '{}'", joined(completed.words));
  if (completed.kind == Completed::Kind::files) line += " -F";
  // fish takes \' and \\ inside '...'
  return line + fmt::format(" -d '{}'\n", escaped(help_with_actions(argument), "'"));
}

Status run_completion(const ParsedArguments& arguments, VerbContext& context) {
  const std::string& shell = arguments.text("shell");
  if (shell == "bash") context.print(bash_completion(context.verbs()));
  if (shell == "zsh") context.print(zsh_completion(context.verbs()));
  if (shell == "fish") context.print(fish_completion(context.verbs()));
  return {};
}

}  // namespace

std::string bash_completion(const std::vector<Verb>& verbs) {
  std::string text =
      "# bash completion for cingulum, made by `cingulum completion bash`\n"
      "_cingulum_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\"); }\n"
      "_cingulum_files() {\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
      "}\n"
      "_cingulum() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  COMPREPLY=()\n";
  text +=
      fmt::format("  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    _cingulum_words '{} --help --version'\n    return\n  fi\n",
                  joined(verb_names(verbs)));
  text += "  case \"${COMP_WORDS[1]}\" in\n";
  for (const Verb& verb : verbs) text += bash_verb(verb, verbs);
  return text + "  esac\n}\ncomplete -F _cingulum cingulum\n";
}

std::string zsh_completion(const std::vector<Verb>& verbs) {
  std::string text =
      "#compdef cingulum\n"
      "# zsh completion for cingulum, made by `cingulum completion zsh`\n"
      "_cingulum() {\n"
      "  local -a verbs\n"
      "  verbs=(\n";
  for (const Verb& verb : verbs) {
    if (!verb.hidden) text += fmt::format("    {}\n", single_quoted(verb.name + ":" + escaped(verb.summary, ":")));
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe 'verb' verbs\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $words[1] in\n";
  for (const Verb& verb : verbs) {
    text += fmt::format("    {})\n      _arguments", verb.name);
    for (const Argument& argument : all_arguments(verb)) text += " \\\n        " + zsh_argument(argument, verbs);
    text += " ;;\n";
  }
  return text +
         "  esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = \"_cingulum\" ]; then\n"
         "  _cingulum \"$@\"\n"
         "else\n"
         "  compdef _cingulum cingulum\n"
         "fi\n";
}

std::string fish_completion(const std::vector<Verb>& verbs) {
  std::string text =
      "# fish completion for cingulum, made by `cingulum completion fish`\n"
      "complete -c cingulum -f\n"
      "complete -c cingulum -n __fish_use_subcommand -l help -s h -d 'print help'\n"
      "complete -c cingulum -n __fish_use_subcommand -l version -d 'print the version'\n";
  for (const Verb& verb : verbs) {
    if (verb.hidden) continue;
    text += fmt::format("complete -c cingulum -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                        escaped(verb.summary, "'"));
    for (const Argument& argument : all_arguments(verb)) text += fish_argument(verb, argument, verbs);
  }
  return text;
}

Verb completion_verb() {
  return {
      .name = "completion",
      .summary = "print a completion script for a shell",
      .description =
          "Verbs, options, choices and files are completed. The script belongs to this version of the "
          "program; print it again after an update.",
      .arguments = {{.name = "shell",
                     .type = ArgumentType::choice,
                     .help = "the shell that is to complete",
                     .metavar = "SHELL",
                     .choices = {"bash", "zsh", "fish"},
                     .positional = true,
                     .required = true}},
      .examples = {{"source <(cingulum completion bash)", "complete in this bash"},
                   {"cingulum completion zsh > ~/.zfunc/_cingulum",
                    "complete in every new zsh (with ~/.zfunc in fpath)"},
                   {"cingulum completion fish > ~/.config/fish/completions/cingulum.fish",
                    "complete in every new fish"}},
      .needs_settings = false,
      .run = run_completion,
  };
}

}  // namespace cingulum
