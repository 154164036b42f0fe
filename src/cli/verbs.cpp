#include "cli/verbs.hpp"

namespace cingulum {

// One line per verb, each defined in the file of its name.
Verb devices_verb();
Verb selfcheck_verb();
Verb info_verb();
Verb convert_verb();
Verb verify_verb();
Verb fit_verb();
Verb phantom_verb();
Verb score_verb();
Verb track_verb();
Verb compare_verb();
Verb cache_verb();
Verb settings_verb();
Verb completion_verb();
Verb docs_verb();
Verb help_verb();

std::vector<Verb> all_verbs() {
  return {
      devices_verb(), selfcheck_verb(), info_verb(),       convert_verb(), verify_verb(),
      fit_verb(),     phantom_verb(),   score_verb(),      track_verb(),   compare_verb(),
      cache_verb(),   settings_verb(),  completion_verb(), docs_verb(),    help_verb(),
  };
}

}  // namespace cingulum
