#include "cli/verbs.hpp"

namespace cingulum {

// Each defined in the file of its name; in the order in which help lists them: data first, then the machine, then the
// program itself.
Verb track_verb();
Verb batch_verb();
Verb merge_verb();
Verb fit_verb();
Verb phantom_verb();
Verb score_verb();
Verb compare_verb();
Verb report_verb();
Verb view_verb();
Verb info_verb();
Verb convert_verb();
Verb resample_verb();
Verb verify_verb();
Verb zarr_verb();
Verb oct_verb();
Verb ring_verb();
Verb devices_verb();
Verb selfcheck_verb();
Verb bench_verb();
Verb cache_verb();
Verb settings_verb();
Verb completion_verb();
Verb docs_verb();
Verb help_verb();

std::vector<Verb> all_verbs() {
  std::vector<Verb> verbs;
  for (Verb (*const verb)() : {track_verb,   batch_verb,  merge_verb,    fit_verb,        phantom_verb, score_verb,
                               compare_verb, report_verb, view_verb,     info_verb,       convert_verb, resample_verb,
                               verify_verb,  zarr_verb,   oct_verb,      ring_verb,       devices_verb, selfcheck_verb,
                               bench_verb,   cache_verb,  settings_verb, completion_verb, docs_verb,    help_verb}) {
    verbs.push_back(verb());
  }
  return verbs;
}

}  // namespace cingulum
