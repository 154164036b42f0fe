// A request as text for the sidecar, and back: what `from` repeats. Which members stand there follows from the phases
// of the table: those on which the result depends.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runs/stored_request.hpp"
#include "runs/track/track_request.hpp"

namespace cingulum {

// Every member that the result depends on: name -> text, list of texts, or true; and which of them were given.
[[nodiscard]] nlohmann::ordered_json arguments_for_sidecar(const TrackRequest& request);

// The request of a sidecar, with what is given here over it. Files with relative names are looked for in the folder of
// the run when they are not in the present one, and must have the hash that the sidecar has.
[[nodiscard]] Result<TrackRequest> request_of_sidecar(const std::filesystem::path& sidecar, const TrackRequest& given);

// The same of the member `arguments` of a sidecar that is elsewhere, `where`; files are neither looked for nor
// compared.
[[nodiscard]] Result<TrackRequest> request_of_run(const nlohmann::ordered_json& sidecar,
                                                  const std::filesystem::path& where, const TrackRequest& given);

// A file that the result depends on though no member names it: b-values found beside the series.
struct FoundInput {
  std::string option;
  std::filesystem::path path;

  template <class Visit, class Self>
  static void json_fields(Visit& visit, Self& self) {
    visit("option", self.option);
    visit("path", self.path);
  }
};

// The files and arrays that the result depends on, by argument. Those among `known` are not read again.
[[nodiscard]] Result<std::vector<RunInput>> input_facts(const TrackRequest& request,
                                                        const std::vector<FoundInput>& found,
                                                        const std::vector<RunInput>& known);

// A repeated run without data must find the phantom that it had: `hash` is that of `dwi`.
[[nodiscard]] Status check_repeated_phantom(const TrackRequest& given, const std::filesystem::path& dwi,
                                            const std::string& hash);

}  // namespace cingulum
