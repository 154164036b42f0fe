// `cingulum cache`: the compiled kernels that are kept between runs.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/verb.hpp"
#include "device/kernel_cache.hpp"

namespace cingulum {

Verb cache_verb();

namespace {

Status run_cache(const ParsedArguments& arguments, VerbContext& context) {
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
      .summary = "show or clear the cache of kernels compiled at run time",
      .description =
          "CUDA kernels that are compiled at run time are kept in CINGULUM_CACHE_DIR, at most CINGULUM_CACHE_LIMIT "
          "bytes, "
          "the least recently used going first. Clearing the cache costs a new compilation, nothing else.",
      .arguments = {{.name = "clear", .type = ArgumentType::flag, .help = "remove all entries"}},
      .common = {CommonOption::json},
      .examples = {{"cingulum cache", "where it is and how full"}, {"cingulum cache --clear", "empty it"}},
      .run = run_cache,
  };
}

}  // namespace cingulum
