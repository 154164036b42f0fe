// `cingulum zarr bench`: an array to host memory, to a device by every engine and back to files, beside the machine's
// own limits.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cli/zarr_actions.hpp"
#include "device/registry.hpp"
#include "measure/bench_report.hpp"
#include "measure/zarr_rows.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

Status generate(const std::string& path, const ParsedArguments& arguments, ThreadPool& pool) {
  zarr::NewArray wanted;
  wanted.type = element_type_of<float>();
  const std::uint64_t bytes = arguments.bytes("generate");
  // A cube of planes of 1 MiB.
  wanted.shape = {std::max<std::uint64_t>(bytes >> 20U, 1), 512, 512};
  CGL_TRY_ASSIGN(wanted.format, asked_zarr_format(arguments));
  if (arguments.given("codec")) {
    CGL_TRY_ASSIGN(wanted.codec, zarr::parse_codec_choice(arguments.text("codec")));
  }
  return measure::generate_zarr(path, wanted, pool);
}

}  // namespace

Status run_zarr_bench(const ParsedArguments& arguments, VerbContext& context) {
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.size() != 1) {
    return fail(ErrorKind::invalid_argument, "cingulum zarr bench takes one array, {} given", paths.size());
  }
  CGL_TRY_ASSIGN(const std::string device_name, context.only_device("cingulum zarr bench"));
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  if (arguments.given("generate")) CGL_TRY(generate(paths[0], arguments, *pool));
  CGL_TRY_ASSIGN(const std::optional<zarr::Array> found,
                 first_zarr_array(paths[0], arguments.given("path") ? arguments.text("path") : std::string()));
  if (!found) return fail(ErrorKind::invalid_argument, "{}: there is no array in it", paths[0]);
  const zarr::Array& array = *found;
  CGL_TRY_ASSIGN(const OpenedDevice opened, open_one_device(context.settings(), device_name));
  Device* const device = opened.device;
  measure::ZarrBench bench{.pool = *pool};
  CGL_TRY_ASSIGN(bench.settings, zarr::EngineSettings::from_settings(context.settings()));
  CGL_TRY_ASSIGN(const zarr::Engine engine, zarr::parse_engine(arguments.text("engine")));
  if (engine != zarr::Engine::automatic) bench.engines = {engine};
  bench.repetitions = arguments.integer("repetitions");
  bench.cold = !arguments.flag("warm-only");
  if (!context.common().json) {
    bench.on_row = [&](const measure::Row& row) { context.print(measure::to_text(row) + "\n"); };
  }
  std::vector<measure::Row> rows;
  const auto keep = [&](std::vector<measure::Row> some) {
    for (measure::Row& row : some) rows.push_back(std::move(row));
  };
  CGL_TRY_ASSIGN(auto on_host, measure::measure_zarr_on_host(array, bench));
  keep(std::move(on_host));
  CGL_TRY_ASSIGN(auto to_device, measure::measure_zarr_to_device(array, *device, bench));
  keep(std::move(to_device));
  if (arguments.given("peers")) {
    CGL_TRY_ASSIGN(auto peers, measure::measure_zarr_peers(array, arguments.text("peers"),
                                                           device->description().backend == Backend::cuda, bench));
    keep(std::move(peers));
  }
  if (!context.common().json) return {};
  Json list = Json::array();
  for (const measure::Row& row : rows) list.push_back(measure::to_json(row));
  Json json = measure::report_frame("zarr bench");
  json.update({{"array", array.name()},
               {"device", device->id()},
               {"threads", context.common().threads},
               {"rows", std::move(list)}});
  context.print(json_text(json));
  return {};
}

}  // namespace cingulum
