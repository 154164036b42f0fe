#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

namespace cingulum {

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace cingulum
