#include "cli/verbs.hpp"

namespace cingulum {

// One line per verb, each defined in the file of its name.
Verb phantom_verb();
Verb fit_verb();
Verb track_verb();
Verb score_verb();
Verb compare_verb();
Verb report_verb();
Verb convert_verb();
Verb devices_verb();
Verb selfcheck_verb();
Verb cache_verb();
Verb settings_verb();
Verb completion_verb();
Verb docs_verb();
Verb help_verb();

std::vector<Verb> all_verbs() {
  return {
      phantom_verb(), fit_verb(),       track_verb(), score_verb(),    compare_verb(),    report_verb(), convert_verb(),
      devices_verb(), selfcheck_verb(), cache_verb(), settings_verb(), completion_verb(), docs_verb(),   help_verb(),
  };
}

}  // namespace cingulum
