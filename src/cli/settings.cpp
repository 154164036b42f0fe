#include "base/settings.hpp"
#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

#include "base/option_name.hpp"
#include "base/terminal.hpp"
#include "cli/text_layout.hpp"
#include "cli/verb.hpp"

namespace cingulum {

Verb settings_verb();

namespace {

// Whether the value of a setting parses; the error of the one getter that reads it.
Status check_one(const Settings& settings, Setting setting) {
  switch (setting) {
    case Setting::device: return settings.devices().map([](auto&&) {});
    case Setting::threads: return settings.threads().map([](auto&&) {});
    case Setting::log: return settings.log_level().map([](auto&&) {});
    case Setting::cache_limit: return settings.cache_limit_bytes().map([](auto&&) {});
    case Setting::memory_limit: return settings.memory_limit_bytes().map([](auto&&) {});
    case Setting::no_sync: return settings.no_sync().map([](auto&&) {});
    case Setting::cache_dir:
    case Setting::cuda_library:
    case Setting::nvrtc_library:
    case Setting::nvml_library:
    case Setting::wgpu_library:
    case Setting::cufile_library:
    case Setting::nvcomp_library: return {};
  }
  return {};
}

void print_json(const Settings& settings, VerbContext& context) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SettingInfo& info : setting_list()) {
    const auto value = settings.given(info.id);
    nlohmann::ordered_json entry = nlohmann::ordered_json::object();
    entry["name"] = info.name;
    entry["meaning"] = with_option_names(info.marked_meaning());
    entry["accepted"] = info.accepted;
    entry["default"] =
        info.default_text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(info.default_text);
    entry["value"] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
    entry["valid"] = check_one(settings, info.id).has_value();
    list.push_back(std::move(entry));
  }
  // Values come from the environment and need not be UTF-8.
  context.print(json_text(list));
}

void print_list(const Settings& settings, VerbContext& context) {
  for (const SettingInfo& info : setting_list()) {
    const auto value = settings.given(info.id);
    std::string text = fmt::format("{}{}\n", info.name, value ? fmt::format("={}", *value) : " is not set");
    text += wrap_text(with_option_names(info.marked_meaning()), context.output_width(), 4);
    std::string facts = fmt::format("accepted: {}", info.accepted);
    if (!info.default_text.empty()) facts += fmt::format("; default: {}", info.default_text);
    text += wrap_text(facts, context.output_width(), 4);
    context.print(escape_control_characters(text));
  }
}

Status run_settings(const ParsedArguments&, VerbContext& context) {
  const Settings& settings = context.settings();
  context.common().json ? print_json(settings, context) : print_list(settings, context);
  return settings.check();
}

}  // namespace

Verb settings_verb() {
  return {
      .name = "settings",
      .summary = "list the settings of the environment and their values",
      .description =
          "Settings are environment variables. Options of the command line win over them. A value in parentheses is "
          "the "
          "default of a setting that is not set. When a setting has a value that is not accepted, the list is printed "
          "all the same, and the exit code is 2.",
      .common = {CommonOption::json},
      .examples = {{"cingulum settings", "what can be set, and what is"},
                   {"CINGULUM_LOG=debug cingulum settings --json", "the same for programs"}},
      .needs_settings = false,
      .run = run_settings,
  };
}

}  // namespace cingulum
