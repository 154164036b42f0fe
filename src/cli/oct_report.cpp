// `cingulum oct report`: one page about a volume of `cingulum oct run`, and its numbers as JSON and CSV.
#include "report/oct_report.hpp"

#include <fmt/format.h>

#include "base/json_text.hpp"
#include "cli/oct_actions.hpp"
#include "report/png.hpp"

namespace cingulum {

Status run_oct_report(const ParsedArguments& arguments, VerbContext& context) {
  namespace fs = std::filesystem;
  CGL_TRY_ASSIGN(const fs::path input, oct_input(arguments));
  CGL_TRY_ASSIGN(const fs::path output, oct_output(arguments));
  const WriteOptions write = context.write_options();
  const fs::path stem = output.parent_path() / output.stem();
  const auto beside = [&](std::string_view ending) {
    fs::path path = stem;
    path += ending;
    return path;
  };
  if (output.extension() != ".html") {
    return fail(ErrorKind::invalid_argument, "--out '{}': a page ends with .html", output.native());
  }
  CGL_TRY(check_output(output, write));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  CGL_TRY_ASSIGN(const OctReport report, make_oct_report(input, pool, context.cancel()));
  std::vector<std::pair<fs::path, std::string>> files = {{beside(".json"), report.json}};
  for (const auto& [name, text] : report.tables) files.emplace_back(beside("_" + name + ".csv"), text);
  CGL_TRY_ASSIGN(const std::vector<std::byte> png, encode_png(report.projection));
  for (const auto& [path, text] : files) CGL_TRY(check_output(path, write));
  CGL_TRY(check_output(beside("_aip.png"), write));
  for (const auto& [path, text] : files) CGL_TRY(write_file_atomically(path, text, write));
  CGL_TRY(write_file_atomically(beside("_aip.png"), png, write));
  CGL_TRY(write_file_atomically(output, report.html, write));
  if (context.common().json) {
    context.print(report.json);
    return {};
  }
  context.print_format("{}: a page, its numbers beside it as .json and .csv, the projection as .png\n",
                       output.native());
  return {};
}

}  // namespace cingulum
