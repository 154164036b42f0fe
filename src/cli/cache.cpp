// `cingulum cache`: what is kept between runs: compiled kernels, and fits of `cingulum track --cache-dir`.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/json_view.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "device/kernel_cache.hpp"
#include "tract/field/fit_cache.hpp"

namespace cingulum {

Verb cache_verb();

namespace {

Status run_fit_cache(const ParsedArguments& arguments, VerbContext& context) {
  const std::string& folder = arguments.text("cache-dir");
  const FitCache cache(folder);
  std::uint64_t removed = 0;
  if (arguments.flag("clear")) {
    CGL_TRY_ASSIGN(removed, cache.clear());
  }
  const std::vector<FitCache::Entry> entries = cache.entries();
  std::uint64_t bytes = 0;
  for (const FitCache::Entry& entry : entries) bytes += entry.file.bytes;
  if (context.common().json) {
    nlohmann::ordered_json fits = nlohmann::ordered_json::array();
    for (const FitCache::Entry& entry : entries) {
      nlohmann::ordered_json fit = {{"file", entry.file.path.filename().string()}, {"bytes", entry.file.bytes}};
      if (entry.about.is_object()) fit.update(entry.about);
      fits.push_back(std::move(fit));
    }
    const nlohmann::ordered_json json = {{"folder", folder},
                                         {"entries", entries.size()},
                                         {"bytes", bytes},
                                         {"removed", removed},
                                         {"fits", std::move(fits)}};
    context.print(json_text(json));
    return {};
  }
  if (arguments.flag("clear")) context.print_format("removed {} fits\n", format_count(removed));
  context.print_format("{}: {} fits, {}\n", folder, format_count(entries.size()), format_bytes(bytes));
  Table table({{""}, {"", Align::right}, {""}, {""}});
  const auto text = [](const nlohmann::ordered_json& about, const char* name) {
    return JsonView(about)[name].text_or("cannot be read");
  };
  for (const FitCache::Entry& entry : entries) {
    table.add_row({entry.file.path.filename().string(), format_bytes(entry.file.bytes), text(entry.about, "model"),
                   text(entry.about, "series")});
  }
  if (!entries.empty()) context.print(table.text(2));
  return {};
}

Status run_cache(const ParsedArguments& arguments, VerbContext& context) {
  if (arguments.given("cache-dir")) return run_fit_cache(arguments, context);
  CGL_TRY_ASSIGN(const auto folder, context.settings().cache_dir());
  CGL_TRY_ASSIGN(const std::uint64_t limit, context.settings().cache_limit_bytes());
  const KernelCache cache(folder, limit);
  std::uint64_t removed = 0;
  if (arguments.flag("clear")) {
    CGL_TRY_ASSIGN(removed, cache.clear());
  }
  const KernelCacheStatistics statistics = cache.statistics();
  if (context.common().json) {
    const nlohmann::ordered_json json = {{"folder", folder.string()},
                                         {"entries", statistics.entries},
                                         {"bytes", statistics.bytes},
                                         {"limit_bytes", statistics.limit_bytes},
                                         {"removed", removed}};
    context.print(json_text(json));
    return {};
  }
  if (arguments.flag("clear")) context.print_format("removed {} compiled kernels\n", format_count(removed));
  context.print_format("{}: {} compiled kernels, {} of at most {}\n", folder.string(), format_count(statistics.entries),
                       format_bytes(statistics.bytes), format_bytes(statistics.limit_bytes));
  return {};
}

}  // namespace

Verb cache_verb() {
  return {
      .name = "cache",
      .summary = "show or clear what is kept between runs: compiled kernels, fits",
      .description =
          "CUDA kernels that are compiled at run time are kept in CINGULUM_CACHE_DIR, at most CINGULUM_CACHE_LIMIT "
          "bytes, "
          "the least recently used going first. Clearing the cache costs a new compilation, nothing else.\n\n"
          "With --cache-dir the fits that `cingulum track --cache-dir` keeps in that folder. They are of the size of "
          "the "
          "fitted images and stay until they are removed.",
      .arguments = {{.name = "clear", .type = ArgumentType::flag, .help = "remove all entries"},
                    {.name = "cache-dir",
                     .type = ArgumentType::text,
                     .help = "the fits in this folder instead of the kernels",
                     .metavar = "FOLDER"}},
      .common = {CommonOption::json},
      .examples = {{"cingulum cache", "where it is and how full"},
                   {"cingulum cache --clear", "empty it"},
                   {"cingulum cache --cache-dir fits --clear", "remove the fits that were kept in the folder fits"}},
      .run = run_cache,
  };
}

}  // namespace cingulum
