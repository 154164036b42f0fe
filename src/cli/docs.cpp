#include "cli/docs.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/option_name.hpp"
#include "base/read_file.hpp"
#include "cli/help.hpp"
#include "runs/argument_value.hpp"

namespace cingulum {

Verb docs_verb();

namespace {

constexpr std::string_view made_by = "<!-- Made by `cingulum docs`; edit the verb in src/cli instead. -->\n";

std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result.push_back('\\');
    result.push_back(c);
  }
  return result;
}

void add_table(std::string& text, std::string_view title, const std::vector<Argument>& arguments) {
  if (arguments.empty()) return;
  text += fmt::format("\n## {}\n\n| name | meaning | accepted | default |\n|---|---|---|---|\n", title);
  for (const Argument& argument : arguments) {
    std::string meaning = help_with_actions(argument);
    if (argument.required) meaning += "; required";
    if (argument.repeatable) meaning += "; may be given several times";
    const std::string value =
        argument.default_text.empty() ? cell(argument.default_note) : fmt::format("`{}`", cell(argument.default_text));
    text += fmt::format("| `{}` | {} | {} | {} |\n", cell(option_label(argument)), cell(meaning),
                        cell(accepted_text(argument)), value);
  }
}

std::string verb_page(const Verb& verb) {
  std::string text =
      fmt::format("{}\n# cingulum {}\n\n{}.\n\n```\n{}\n```\n", made_by, verb.name, verb.summary, usage_line(verb));
  if (!verb.description.empty()) text += fmt::format("\n{}\n", verb.description);
  std::vector<Argument> positional;
  std::vector<Argument> options;
  for (const Argument& argument : all_arguments(verb)) (argument.positional ? positional : options).push_back(argument);
  add_table(text, "Arguments", positional);
  add_table(text, "Options", options);
  if (!verb.examples.empty()) text += "\n## Examples\n";
  for (const Example& example : verb.examples)
    text += fmt::format("\n{}:\n```\n{}\n```\n", example.meaning, example.command);
  if (!verb.references.empty()) text += "\n## References\n\n";
  for (const std::string& reference : verb.references) text += fmt::format("- {}\n", reference);
  return text;
}

std::string index_page(const std::vector<Verb>& verbs) {
  std::string text = fmt::format("{}\n# Commands\n\n```\ncingulum VERB [options]\n```\n\n", made_by);
  text += "Results go to stdout, talk to stderr.\n\n| verb | what it does |\n|---|---|\n";
  for (const Verb& verb : verbs) {
    if (!verb.hidden) text += fmt::format("| [{0}]({0}.md) | {1} |\n", verb.name, cell(verb.summary));
  }
  text += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitCode& exit : exit_codes()) text += fmt::format("| {} | {} |\n", exit.code, exit.meaning);
  text += "\n## Settings of the environment\n\n| name | meaning | accepted | default |\n|---|---|---|---|\n";
  for (const SettingInfo& info : setting_list()) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", info.name, cell(with_option_names(info.marked_meaning())),
                        cell(info.accepted), cell(info.default_text));
  }
  return text;
}

// A page that somebody wrote by hand is neither replaced nor removed.
Result<bool> is_ours(const std::filesystem::path& path) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(path));
  return text.starts_with(made_by);
}

// Pages of ours that no verb asks for: those of verbs that were renamed or removed.
std::vector<std::string> stale_pages(const std::filesystem::path& folder, const std::vector<Page>& pages) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const std::string name = entry->path().filename().native();
    const bool known = std::any_of(pages.begin(), pages.end(), [&](const Page& page) { return page.name == name; });
    if (name.ends_with(".md") && !known && is_ours(entry->path()).value_or(false)) names.push_back(name);
    entry.increment(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status check_pages(const std::filesystem::path& folder, const std::vector<Page>& pages) {
  std::string wrong;
  const auto add = [&](const std::string& name, std::string_view what) {
    wrong += fmt::format("{}{} {}", wrong.empty() ? "" : ", ", name, what);
  };
  for (const Page& page : pages) {
    const Result<std::string> current = read_text_file(folder / page.name);
    if (!current) {
      if (current.error().kind() != ErrorKind::not_found) return tl::make_unexpected(current.error());
      add(page.name, "is missing");
    } else if (*current != page.text) {
      add(page.name, "differs");
    }
  }
  for (const std::string& name : stale_pages(folder, pages)) add(name, "belongs to no verb");
  if (wrong.empty()) return {};
  return fail(ErrorKind::corrupt, "{}: {}; run 'cingulum docs {}'", folder.native(), wrong, folder.native());
}

Status write_pages(const std::filesystem::path& folder, const std::vector<Page>& pages, WriteOptions options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorKind::io, "making the folder {}: {}", folder.native(), system_error_text(error.value()));
  for (const Page& page : pages) {
    const std::filesystem::path path = folder / page.name;
    const Result<bool> ours = is_ours(path);
    if (!ours && ours.error().kind() != ErrorKind::not_found) return tl::make_unexpected(ours.error());
    if (ours && !*ours) {
      return fail(ErrorKind::already_exists, "{} was not made by 'cingulum docs' and is left alone", path.native());
    }
    options.force = ours.has_value();
    CGL_TRY(write_file_atomically(path, page.text, options));
  }
  for (const std::string& name : stale_pages(folder, pages)) {
    std::filesystem::remove(folder / name, error);
    if (error)
      return fail(ErrorKind::io, "removing {}: {}", (folder / name).native(), system_error_text(error.value()));
  }
  return {};
}

Status run_docs(const ParsedArguments& arguments, VerbContext& context) {
  const std::filesystem::path folder = arguments.text("folder");
  const std::vector<Page> pages = command_pages(context.verbs());
  return arguments.flag("check") ? check_pages(folder, pages) : write_pages(folder, pages, context.write_options());
}

}  // namespace

std::vector<Page> command_pages(const std::vector<Verb>& verbs) {
  std::vector<Page> pages = {{"README.md", index_page(verbs)}};
  for (const Verb& verb : verbs) {
    if (!verb.hidden) pages.push_back({verb.name + ".md", verb_page(verb)});
  }
  return pages;
}

Verb docs_verb() {
  return {
      .name = "docs",
      .summary = "write the pages of docs/commands",
      .description = "One page for each verb, and an index. Pages of verbs that are no more are removed.",
      .arguments = {{.name = "folder",
                     .help = "the folder of the pages",
                     .metavar = "FOLDER",
                     .positional = true,
                     .required = true},
                    {.name = "check",
                     .type = ArgumentType::flag,
                     .help = "write nothing; fail when a page is not current"}},
      .examples = {{"cingulum docs --check docs/commands", "what the tests run"}},
      .hidden = true,
      .needs_settings = false,
      .run = run_docs,
  };
}

}  // namespace cingulum
