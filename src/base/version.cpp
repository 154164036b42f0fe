#include "base/version.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cingulum_build_info.hpp"

namespace cingulum {

std::string version_text() {
  std::string compilers{build_info::cxx_compiler};
  if (build_info::has_cuda) compilers += fmt::format(", {}", build_info::cuda_compiler);
  std::string backends = "cpu";
  if (build_info::has_cuda) backends += ", cuda";
  if (build_info::has_webgpu) backends += fmt::format(", webgpu ({})", build_info::wgpu_version);
  return fmt::format("cingulum {}\ncommit: {}\nbuild: {}\ncompilers: {}\nbackends: {}\n", build_info::version,
                     build_info::commit, build_info::build_type, compilers, backends);
}

std::string version_json() {
  const auto text_or_null = [](bool present, std::string_view text) {
    return present ? nlohmann::ordered_json(text) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  object["version"] = build_info::version;
  object["commit"] = build_info::commit;
  object["build"] = build_info::build_type;
  object["compilers"] = nlohmann::ordered_json::object();
  object["compilers"]["cxx"] = build_info::cxx_compiler;
  object["compilers"]["cuda"] = text_or_null(build_info::has_cuda, build_info::cuda_compiler);
  object["wgpu"] = text_or_null(build_info::has_webgpu, build_info::wgpu_version);
  object["backends"] = nlohmann::ordered_json::array();
  object["backends"].push_back("cpu");
  if (build_info::has_cuda) object["backends"].push_back("cuda");
  if (build_info::has_webgpu) object["backends"].push_back("webgpu");
  return object.dump(2) + "\n";
}

}  // namespace cingulum
